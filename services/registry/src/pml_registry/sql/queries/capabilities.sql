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
        org, project, pattern_id, description, document, embedding, embedding_model,
        code, code_hash, structure, parameters_schema, tools_used, created_by
    )
    VALUES ($1, $2, $3, $4, $5, $6::real[]::vector, $7, $8, $9, $10, $11, $12, $13)
    ON CONFLICT (org, project, pattern_id) DO UPDATE
    SET description = excluded.description,
        document = excluded.document,
        embedding = excluded.embedding,
        embedding_model = excluded.embedding_model,
        updated_at = now()
    RETURNING org, project, pattern_id
)
INSERT INTO capability_usage (org, project, pattern_id)
SELECT org, project, pattern_id
FROM made
ON CONFLICT DO NOTHING

-- name: keep-former-name
INSERT INTO capability_aliases (org, project, alias, pattern_id, named_at)
SELECT org, project, name, pattern_id, named_at
FROM capability_records
WHERE org = $1 AND project = $2 AND pattern_id = $3 AND name <> $4

-- name: name-capability
INSERT INTO capability_records (org, project, pattern_id, name, namespace, action, hash)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (org, project, pattern_id) DO UPDATE
SET name = excluded.name,
    namespace = excluded.namespace,
    action = excluded.action,
    hash = excluded.hash,
    named_at = now(),
    updated_at = now()
WHERE capability_records.name <> excluded.name

-- name: hold-capability
SELECT name, named, listed, description, tools_used, learning_revision
FROM capability
WHERE org = $1 AND project = $2 AND pattern_id = $3

-- name: seen-capabilities
-- Of each message its capability and what its handling stated, in their order; one row each,
-- whatever there is.
SELECT
    inbox.facts, capability.name, capability.named, capability.listed, capability.description,
    capability.tools_used, capability.learning_revision
FROM unnest($1::uuid[], $2::text[], $3::text[], $4::uuid[])
    WITH ORDINALITY AS seen (message_id, org, project, pattern_id, place)
LEFT JOIN capability USING (org, project, pattern_id)
LEFT JOIN inbox ON inbox.message_id = seen.message_id AND inbox.consumer = $5
ORDER BY seen.place

-- name: learn-once
-- Statistics of capabilities and the memory of their messages, in one statement. Returns the
-- messages that took effect; the others were handled, or their capability learned or was named,
-- since it was read.
WITH learned AS (
    SELECT *
    FROM unnest(
        $1::text[], $2::text[], $3::uuid[], $4::integer[], $5::integer[], $6::double precision[],
        $7::text[], $8::integer[], $9::boolean[], $10::integer[], $11::text[], $12::uuid[],
        $13::text[]
    ) AS learned (
        org, project, pattern_id, usage_count, success_count, mean_duration_ms, learning,
        learning_revision, listed, revision_before, name_before, message_id, facts
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
        FROM capability_records AS record
        WHERE record.org = learned.org AND record.project = learned.project
            AND record.pattern_id = learned.pattern_id AND record.name = learned.name_before
    )
    ORDER BY usage.org, usage.project, usage.pattern_id
    FOR UPDATE OF usage
), noted AS (
    INSERT INTO inbox (message_id, consumer, facts)
    SELECT learned.message_id, $14::text, learned.facts::json
    FROM learned
    JOIN held USING (message_id)
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
    mean_duration_ms = learned.mean_duration_ms,
    learning = learned.learning::json,
    learning_revision = learned.learning_revision,
    learned_at = now()
FROM learned
JOIN noted USING (message_id)
WHERE capability_usage.org = learned.org AND capability_usage.project = learned.project
    AND capability_usage.pattern_id = learned.pattern_id
RETURNING learned.message_id

-- name: set-cache
-- No row changes where it is set like that already.
UPDATE capability_records
SET cache_policy = $4,
    cache_ttl_s = $5,
    cache_forced = $6,
    cache_revision = cache_revision + 1,
    updated_at = now()
WHERE org = $1 AND project = $2 AND pattern_id = $3
    AND (cache_policy, cache_ttl_s, cache_forced) IS DISTINCT FROM ($4, $5::integer, $6)

-- name: capability-by-id
SELECT * FROM capability WHERE org = $1 AND project = $2 AND pattern_id = $3

-- name: capability-by-name
SELECT *
FROM capability
WHERE org = $1 AND project = $2
    AND pattern_id = coalesce(
        (SELECT pattern_id FROM capability_records
            WHERE org = $1 AND project = $2 AND name = $3),
        (SELECT pattern_id FROM capability_aliases
            WHERE org = $1 AND project = $2 AND alias = $3)
    )

-- name: describe-capabilities
-- $3 and $4: references and, beside each that is one, its id. A name that is meant as it stands
-- goes before a callable one, that before one told apart by digits of the id.
SELECT DISTINCT ON (asked.reference)
    asked.reference, capability.pattern_id, capability.name, capability.aliases, capability.code,
    capability.code_hash, capability.description, capability.parameters_schema
FROM unnest($3::text[], $4::uuid[]) AS asked (reference, id)
CROSS JOIN LATERAL (
    SELECT pattern_id, 0 AS rank, created_at AS named_at
    FROM workflow_pattern
    WHERE org = $1 AND project = $2 AND pattern_id = asked.id
    UNION ALL
    SELECT pattern_id, 1, named_at
    FROM capability_name
    WHERE org = $1 AND project = $2 AND name = asked.reference
    UNION ALL
    SELECT pattern_id, 2, named_at
    FROM capability_name
    WHERE org = $1 AND project = $2 AND callable_name = asked.reference
    UNION ALL
    SELECT pattern_id, 3, named_at
    FROM capability_name
    WHERE org = $1 AND project = $2
        AND callable_name = substring(asked.reference FROM '^(.*)_[0-9a-f]{4,32}$')
        AND replace(pattern_id::text, '-', '')
            LIKE '%' || substring(asked.reference FROM '_([0-9a-f]{4,32})$')
) AS meant
JOIN capability
    ON capability.org = $1 AND capability.project = $2
    AND capability.pattern_id = meant.pattern_id
ORDER BY asked.reference, meant.rank, meant.named_at, meant.pattern_id

-- name: capability-names
SELECT name
FROM capability
WHERE org = $1 AND project = $2
ORDER BY usage_count DESC, name COLLATE "C"
LIMIT 500

-- name: list-capabilities
SELECT *
FROM capability
WHERE org = $1 AND project = $2 AND (listed OR $3)
ORDER BY usage_count DESC, name COLLATE "C"
LIMIT $4 OFFSET $5

-- name: count-capabilities
SELECT count(*)
FROM workflow_pattern
WHERE org = $1 AND project = $2 AND (listed OR $3)
