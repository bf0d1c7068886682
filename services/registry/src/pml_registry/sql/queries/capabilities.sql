-- name: lock-capability
SELECT pg_advisory_xact_lock(hashtextextended('capability ' || $1::text, 0))

-- name: lock-names
SELECT pg_advisory_xact_lock(hashtextextended('names ' || $1::text || '.' || $2::text, 0))

-- name: taken-names
SELECT name FROM capability_records WHERE org = $1 AND project = $2 AND name = ANY ($3)
UNION
SELECT alias FROM capability_aliases WHERE org = $1 AND project = $2 AND alias = ANY ($3)

-- name: create-capability
WITH made AS (
    INSERT INTO workflow_pattern (
        org, project, pattern_id, description, document, code, code_hash, structure,
        parameters_schema, tools_used, created_by, terms, shape_hash, makes_calls, source
    )
    VALUES ($1, $2, $3, '', $4, $5, $6, $7, $8, $9, $10, $11::jsonb, $12, $13, $14)
    ON CONFLICT DO NOTHING
    RETURNING org, project, pattern_id
)
INSERT INTO capability_usage (org, project, pattern_id)
SELECT org, project, pattern_id
FROM made
ON CONFLICT DO NOTHING

-- name: create-record
-- A record of its own, with a provisional name, for a behaviour that has none.
WITH made AS (
    INSERT INTO capability_records (org, project, record_id, latest, owner, name)
    SELECT $1, $2, $4, 1, $5, $6
    WHERE NOT EXISTS (
        SELECT FROM capability_versions WHERE org = $1 AND project = $2 AND pattern_id = $3
    )
    RETURNING record_id
), noted AS (
    INSERT INTO capability_changes (
        org, project, record_id, sequence, change, principal, version, pattern_id
    )
    SELECT $1, $2, record_id, 1, 'created', $5, 1, $3
    FROM made
)
INSERT INTO capability_versions (org, project, record_id, number, pattern_id, created_by)
SELECT $1, $2, record_id, 1, $3, $5
FROM made
RETURNING record_id, number

-- name: hold-capability
SELECT
    name, named, listed, learning_revision, health, true AS makes_calls, false AS is_variant
FROM capability_version
WHERE org = $1 AND project = $2 AND pattern_id = $3
ORDER BY named DESC, named_at, record_id
LIMIT 1

-- name: seen-capabilities
-- Of each message its capability and what its handling stated, in their order; one row each,
-- whatever there is.
SELECT
    inbox.facts, behaviour.name, behaviour.named, behaviour.listed,
    behaviour.learning_revision, behaviour.health,
    coalesce(pattern.makes_calls, true) AS makes_calls,
    EXISTS (
        SELECT
        FROM offered_shapes offered
        WHERE offered.org = seen.org AND offered.project = seen.project
            AND offered.shape_hash = pattern.shape_hash
            AND offered.pattern_id <> pattern.pattern_id
    ) AS is_variant
FROM unnest($1::uuid[], $2::text[], $3::text[], $4::uuid[])
    WITH ORDINALITY AS seen (message_id, org, project, pattern_id, place)
LEFT JOIN LATERAL (
    SELECT name, named, listed, learning_revision, health
    FROM capability_version
    WHERE org = seen.org AND project = seen.project AND pattern_id = seen.pattern_id
    ORDER BY named DESC, named_at, record_id
    LIMIT 1
) AS behaviour ON true
LEFT JOIN workflow_pattern pattern
    ON pattern.org = seen.org AND pattern.project = seen.project
    AND pattern.pattern_id = seen.pattern_id
LEFT JOIN inbox ON inbox.message_id = seen.message_id AND inbox.consumer = $5
ORDER BY seen.place

-- name: learn-once
-- Statistics of capabilities and the memory of their messages, in one statement. Returns the
-- messages that took effect; the others were handled, or their capability learned or was named, or
-- another of its shape was listed, since it was read.
WITH learned AS (
    SELECT *
    FROM unnest(
        $1::text[], $2::text[], $3::uuid[], $4::integer[], $5::integer[], $6::integer[],
        $7::double precision[], $8::integer[], $9::integer[], $10::double precision[],
        $11::double precision[], $12::double precision[], $13::text[], $14::text[], $15::integer[],
        $16::boolean[], $17::integer[], $18::text[], $19::uuid[], $20::text[]
    ) AS learned (
        org, project, pattern_id, usage_count, success_count, success_streak, mean_duration_ms,
        caller_faults, environment_faults, success_value, success_low, success_high, health,
        learning, learning_revision, listed, revision_before, name_before, message_id, facts
    )
), held AS (
    SELECT learned.message_id
    FROM learned
    JOIN capability_usage AS usage
        ON usage.org = learned.org AND usage.project = learned.project
        AND usage.pattern_id = learned.pattern_id
        AND usage.learning_revision = learned.revision_before
    WHERE EXISTS (
        SELECT
        FROM capability_versions AS version
        JOIN capability_records AS record USING (org, project, record_id)
        WHERE org = learned.org AND project = learned.project
            AND version.pattern_id = learned.pattern_id AND record.name = learned.name_before
    )
    ORDER BY usage.org, usage.project, usage.pattern_id
    FOR UPDATE OF usage
), newly AS (
    SELECT learned.message_id, org, project, pattern_id, pattern.shape_hash
    FROM learned
    JOIN held USING (message_id)
    JOIN workflow_pattern AS pattern USING (org, project, pattern_id)
    WHERE learned.listed AND NOT pattern.listed AND pattern.shape_hash IS NOT NULL
), offered AS (
    -- Waits for a concurrent listing of the same shape, and yields to it.
    INSERT INTO offered_shapes (org, project, shape_hash, pattern_id)
    SELECT org, project, shape_hash, pattern_id
    FROM newly
    ORDER BY org, project, shape_hash, pattern_id
    ON CONFLICT DO NOTHING
    RETURNING org, project, pattern_id
), admitted AS (
    SELECT message_id FROM held
    EXCEPT
    SELECT message_id
    FROM newly
    WHERE NOT EXISTS (SELECT FROM offered WHERE offered.pattern_id = newly.pattern_id
            AND offered.org = newly.org AND offered.project = newly.project)
        AND NOT EXISTS (SELECT FROM offered_shapes AS own WHERE own.pattern_id = newly.pattern_id
            AND own.org = newly.org AND own.project = newly.project)
), noted AS (
    INSERT INTO inbox (message_id, consumer, facts, org, project)
    SELECT learned.message_id, $21::text, learned.facts::json, learned.org, learned.project
    FROM learned
    JOIN admitted USING (message_id)
    ON CONFLICT DO NOTHING
    RETURNING message_id
), shown AS (
    UPDATE workflow_pattern
    SET listed = learned.listed, updated_at = now()
    FROM learned
    JOIN noted USING (message_id)
    WHERE workflow_pattern.org = learned.org AND workflow_pattern.project = learned.project
        AND workflow_pattern.pattern_id = learned.pattern_id
        AND workflow_pattern.listed <> learned.listed
)
UPDATE capability_usage
SET usage_count = learned.usage_count,
    success_count = learned.success_count,
    success_streak = learned.success_streak,
    mean_duration_ms = learned.mean_duration_ms,
    caller_faults = learned.caller_faults,
    environment_faults = learned.environment_faults,
    success_value = learned.success_value,
    success_low = learned.success_low,
    success_high = learned.success_high,
    health = learned.health,
    learning = learned.learning::json,
    learning_revision = learned.learning_revision,
    learned_at = now()
FROM learned
JOIN noted USING (message_id)
WHERE capability_usage.org = learned.org AND capability_usage.project = learned.project
    AND capability_usage.pattern_id = learned.pattern_id
RETURNING learned.message_id

-- name: undescribed
-- Of each capability its texts, if nothing says what the version is for that stands for it.
SELECT org, project, pattern_id, name, description, tools_used, parameters_schema
FROM unnest($1::text[], $2::text[], $3::uuid[]) AS wanted (org, project, pattern_id)
CROSS JOIN LATERAL (
    SELECT name, description, tools_used, parameters_schema
    FROM capability_version version
    WHERE version.org = wanted.org AND version.project = wanted.project
        AND version.pattern_id = wanted.pattern_id
    ORDER BY named DESC, named_at, record_id, number DESC
    LIMIT 1
) AS texts
WHERE description = ''

-- name: describe-first
-- Unless somebody has described it since it was read, or it has another name since.
WITH described AS (
    UPDATE capability_versions version
    SET description = $4
    FROM behaviour
    WHERE behaviour.org = $1 AND behaviour.project = $2 AND behaviour.pattern_id = $3
        AND behaviour.description = '' AND behaviour.name = $7
        AND version.org = $1 AND version.project = $2
        AND version.record_id = behaviour.record_id AND version.number = behaviour.number
    RETURNING version.pattern_id
)
UPDATE workflow_pattern pattern
SET description = $4, document = $5, terms = $6::jsonb, updated_at = now()
FROM described
WHERE pattern.org = $1 AND pattern.project = $2 AND pattern.pattern_id = described.pattern_id
RETURNING pattern.pattern_id

-- name: set-cache
-- No row changes where it is set like that already.
UPDATE capability_records
SET cache_policy = $4,
    cache_ttl_s = $5,
    cache_forced = $6,
    cache_revision = cache_revision + 1,
    updated_at = now()
WHERE org = $1 AND project = $2 AND record_id = $3
    AND (cache_policy, cache_ttl_s, cache_forced) IS DISTINCT FROM ($4, $5::integer, $6)

-- name: versions-of-record
SELECT
    number, version.created_at, tag, yanked_reason, pattern_id, health,
    coalesce(version.description, pattern.description) AS description
FROM capability_versions version
JOIN capability_usage USING (org, project, pattern_id)
JOIN workflow_pattern pattern USING (org, project, pattern_id)
WHERE org = $1 AND project = $2 AND record_id = $3
ORDER BY number

-- name: record-at-version
SELECT * FROM capability_version WHERE org = $1 AND project = $2 AND record_id = $3 AND number = $4

-- name: describe-capabilities
-- $3 and $4: references and, beside each that is one, its id. A name that is meant as it stands
-- goes before a callable one, that before one told apart by digits of the id.
WITH meant AS (
    SELECT DISTINCT ON (asked.reference) asked.reference, found.record_id, found.number
    FROM unnest($3::text[], $4::uuid[]) AS asked (reference, id)
    CROSS JOIN LATERAL (
        SELECT record_id, latest AS number, 0 AS rank, named_at
        FROM capability_records
        WHERE org = $1 AND project = $2 AND record_id = asked.id
        UNION ALL
        SELECT record_id, version.number, 0, named_at
        FROM capability_versions version
        JOIN capability_records record USING (org, project, record_id)
        WHERE org = $1 AND project = $2 AND version.pattern_id = asked.id
        UNION ALL
        SELECT record_id, record.latest, 1, called.named_at
        FROM capability_name called
        JOIN capability_records record USING (org, project, record_id)
        WHERE org = $1 AND project = $2 AND called.name = asked.reference
        UNION ALL
        SELECT record_id, record.latest, 2, called.named_at
        FROM capability_name called
        JOIN capability_records record USING (org, project, record_id)
        WHERE org = $1 AND project = $2 AND called.callable_name = asked.reference
        UNION ALL
        SELECT record.record_id, record.latest, 3, called.named_at
        FROM capability_name called
        JOIN capability_records record USING (org, project, record_id)
        JOIN capability_versions version
            ON version.org = $1 AND version.project = $2
            AND version.record_id = called.record_id AND version.number = record.latest
        WHERE record.org = $1 AND record.project = $2
            AND called.callable_name = substring(asked.reference FROM '^(.*)_[0-9a-f]{4,32}$')
            AND replace(version.pattern_id::text, '-', '')
                LIKE '%' || substring(asked.reference FROM '_([0-9a-f]{4,32})$')
    ) AS found
    ORDER BY asked.reference, found.rank, found.named_at, found.record_id, found.number DESC
)
SELECT
    meant.reference, capability.org, capability.project, capability.record_id, capability.number,
    capability.pattern_id, capability.name, capability.aliases, capability.code,
    capability.code_hash, capability.description, capability.parameters_schema,
    capability.signature, capability.key_id, capability.usage_count, capability.success_count,
    capability.success_streak, capability.mean_duration_ms, capability.caller_faults,
    capability.environment_faults, capability.success_value, capability.success_low,
    capability.success_high, capability.health, capability.good_version
FROM meant
JOIN capability_version capability
    ON capability.org = $1 AND capability.project = $2
    AND capability.record_id = meant.record_id AND capability.number = meant.number
WHERE capability.visibility <> 'private' OR $5::text IS NULL OR capability.owner = $5 OR $6

-- name: capability-names
-- Those that a principal sees, $3, none for a service; $4: is an admin.
SELECT name
FROM capability
WHERE org = $1 AND project = $2
    AND (visibility <> 'private' OR $3::text IS NULL OR owner = $3 OR $4)
ORDER BY usage_count DESC, name COLLATE "C"
LIMIT 500

-- name: list-capabilities
SELECT *
FROM capability
WHERE org = $1 AND project = $2 AND (listed OR $3)
    AND (visibility <> 'private' OR $4::text IS NULL OR owner = $4)
    AND (
        $7::bigint IS NULL
        OR (-usage_count, name COLLATE "C", record_id) > ($7, $8::text, $9::uuid)
    )
ORDER BY usage_count DESC, name COLLATE "C", record_id
LIMIT $5 OFFSET $6

-- name: count-capabilities
SELECT count(*)
FROM capability_records record
JOIN capability_versions version USING (org, project, record_id)
JOIN workflow_pattern pattern USING (org, project, pattern_id)
WHERE org = $1 AND project = $2 AND version.number = record.latest AND (pattern.listed OR $3)
    AND (record.visibility <> 'private' OR $4::text IS NULL OR record.owner = $4)
