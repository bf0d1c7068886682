-- name: locate-own
-- A record of the viewer's scope by one of its names, unless it is another's private one.
-- $4: principal, none for a service; $5: is an admin.
SELECT record.org, record.project, record.record_id, record.latest AS version
FROM capability_name called
JOIN capability_records record USING (org, project, record_id)
WHERE org = $1 AND project = $2 AND called.name = $3
    AND (record.visibility <> 'private' OR $4::text IS NULL OR record.owner = $4 OR $5)
LIMIT 1

-- name: locate-own-by-id
-- By the id of a record, or of a behaviour: then at the version of it that stands for it.
SELECT org, project, record_id, version
FROM (
    SELECT org, project, record_id, latest AS version, 0 AS rank, true AS is_latest,
        true AS named, named_at
    FROM capability_records
    WHERE org = $1 AND project = $2 AND record_id = $3
        AND (visibility <> 'private' OR $4::text IS NULL OR owner = $4 OR $5)
    UNION ALL
    SELECT org, project, record_id, number, 1, is_latest, named, named_at
    FROM capability_version
    WHERE org = $1 AND project = $2 AND pattern_id = $3
        AND (visibility <> 'private' OR $4::text IS NULL OR owner = $4 OR $5)
) AS meant
ORDER BY rank, is_latest DESC, named DESC, named_at, record_id
LIMIT 1

-- name: locate-shared
-- Records of other scopes: those of the viewer's organisation first. By the callable name, and by
-- the name itself where that is known.
SELECT record.org, record.project, record.record_id, record.latest AS version
FROM (
    SELECT org, project, record_id, named_at
    FROM capability_records
    WHERE visibility IN ('org', 'public') AND callable_name = $3
        AND ($4::text IS NULL OR name = $4)
    UNION ALL
    SELECT org, project, record_id, named_at
    FROM capability_aliases
    WHERE callable_name = $3 AND ($4::text IS NULL OR alias = $4)
) AS called
JOIN capability_records record USING (org, project, record_id)
WHERE (org, project) <> ($1, $2)
    AND (record.visibility = 'public' OR (record.visibility = 'org' AND org = $1))
ORDER BY org <> $1, called.named_at, record_id
LIMIT 1

-- name: locate-in-scope
-- A record of the scope $6, $7 by one of its names, and by the first digits of its id ('' for any).
SELECT record.org, record.project, record.record_id, record.latest AS version
FROM capability_name called
JOIN capability_records record USING (org, project, record_id)
WHERE org = $6 AND project = $7 AND called.name = $3
    AND starts_with(replace(record_id::text, '-', ''), $8)
    AND CASE
        WHEN org = $1 AND project = $2
            THEN record.visibility <> 'private' OR $4::text IS NULL OR record.owner = $4 OR $5
        WHEN org = $1 THEN record.visibility IN ('org', 'public')
        ELSE record.visibility = 'public'
    END
LIMIT 1

-- name: summaries-of-versions
SELECT
    org, project, version.record_id, version.number, version.tag, pattern_id, pattern.code,
    pattern.code_hash, coalesce(version.description, pattern.description) AS description,
    version.change_summary, version.created_by, version.created_at, version.yanked_reason,
    version.signature, version.key_id, version.signed_at, usage.usage_count,
    usage.success_count, usage.success_streak, usage.mean_duration_ms, usage.caller_faults,
    usage.environment_faults, usage.success_value, usage.success_low, usage.success_high,
    usage.health
FROM capability_versions version
JOIN workflow_pattern pattern USING (org, project, pattern_id)
JOIN capability_usage usage USING (org, project, pattern_id)
WHERE org = $1 AND project = $2 AND version.record_id = $3
ORDER BY version.number DESC

-- name: query-records
-- $1, $2: the viewer's scope; $3, $4: principal, is an admin; $5: reach; $6 to $10: patterns and
-- tags; $11: visibility; $12, $13: unlisted and unnamed ones, too; $14: order; $15 to $17: the last
-- record of the page before; $18: how many; $19: with the schemas of their arguments.
WITH found AS (
    SELECT
        capability.org, capability.project, capability.record_id, capability.name,
        capability.owner, capability.visibility, capability.tags, capability.number,
        capability.tag, capability.pattern_id, capability.description, capability.listed,
        CASE WHEN $19 THEN capability.parameters_schema END AS parameters_schema,
        capability.updated_at, made.created_by, made.created_at, capability.usage_count,
        capability.success_count, capability.success_streak, capability.mean_duration_ms,
        capability.caller_faults, capability.environment_faults, capability.success_value,
        capability.success_low, capability.success_high, capability.health,
        capability.good_version,
        CASE $14
            WHEN 'usage' THEN -capability.usage_count
            WHEN 'date' THEN -(extract(epoch FROM capability.updated_at) * 1e6)::bigint
            ELSE 0
        END::bigint AS rank
    FROM capability
    JOIN capability_versions made
        ON made.org = capability.org AND made.project = capability.project
        AND made.record_id = capability.record_id AND made.number = 1
    WHERE CASE
            WHEN capability.org = $1 AND capability.project = $2
                THEN visibility <> 'private' OR owner = $3 OR $4
            WHEN capability.org = $1 THEN $5 IN ('org', 'public') AND visibility IN ('org', 'public')
            ELSE $5 = 'public' AND visibility = 'public'
        END
        AND ($6::text IS NULL OR made.created_by LIKE $6)
        AND ($7::text IS NULL OR split_part(capability.name, ':', 1) LIKE $7)
        AND (
            $8::text IS NULL
            OR EXISTS (
                SELECT
                FROM capability_versions version
                WHERE version.org = capability.org AND version.project = capability.project
                    AND version.record_id = capability.record_id
                    AND 'v' || array_to_string(version.tag, '.') LIKE $8
            )
        )
        AND ($9::text IS NULL OR capability.name ILIKE $9 OR capability.description ILIKE $9)
        AND capability.tags @> $10
        AND ($11::text IS NULL OR visibility = $11)
        AND (capability.listed OR $12)
        AND (capability.named OR $13)
), page AS (
    SELECT *
    FROM found
    WHERE $15::bigint IS NULL OR (rank, name COLLATE "C", record_id) > ($15, $16, $17::uuid)
    ORDER BY rank, name COLLATE "C", record_id
    LIMIT $18
)
SELECT counted.total, page.*
FROM (SELECT count(*) AS total FROM found) AS counted
LEFT JOIN page ON true
ORDER BY page.rank, page.name COLLATE "C", page.record_id

-- name: read-history
SELECT
    change.*, before.code AS code_before, after.code AS code_after, signed.key_id, signed.signed_at
FROM capability_changes change
LEFT JOIN capability_versions signed
    ON signed.org = $1 AND signed.project = $2 AND signed.record_id = $3
    AND signed.number = change.version
LEFT JOIN capability_versions former
    ON change.change = 'versioned' AND former.org = $1 AND former.project = $2
    AND former.record_id = $3 AND former.number = change.version - 1
LEFT JOIN workflow_pattern before
    ON before.org = $1 AND before.project = $2 AND before.pattern_id = former.pattern_id
LEFT JOIN workflow_pattern after
    ON after.org = $1 AND after.project = $2 AND after.pattern_id = change.pattern_id
WHERE change.org = $1 AND change.project = $2 AND change.record_id = $3
    AND ($4::integer IS NULL OR change.sequence < $4)
ORDER BY change.sequence DESC
LIMIT $5

-- name: record-state
SELECT
    name, owner, visibility, tags, latest,
    ARRAY(
        SELECT alias
        FROM capability_aliases former
        WHERE former.org = $1 AND former.project = $2 AND former.record_id = $3
        ORDER BY named_at, alias
    ) AS aliases
FROM capability_records
WHERE org = $1 AND project = $2 AND record_id = $3
FOR UPDATE

-- name: change-of-request
SELECT record_id FROM capability_changes WHERE org = $1 AND project = $2 AND request_id = $3

-- name: save-record
UPDATE capability_records
SET owner = $4, visibility = $5, tags = $6, latest = $7, updated_at = now()
WHERE org = $1 AND project = $2 AND record_id = $3

-- name: rename-record
-- The name that it has had becomes an alias, and the new one is none any more.
WITH unused AS (
    DELETE FROM capability_aliases
    WHERE org = $1 AND project = $2 AND record_id = $3 AND alias = $4
), former AS (
    INSERT INTO capability_aliases (org, project, alias, record_id, named_at)
    SELECT org, project, name, record_id, named_at
    FROM capability_records
    WHERE org = $1 AND project = $2 AND record_id = $3
)
UPDATE capability_records
SET name = $4, namespace = $5, action = $6, named_at = now()
WHERE org = $1 AND project = $2 AND record_id = $3

-- name: save-version
UPDATE capability_versions
SET tag = $5, yanked_reason = $6, description = $7
WHERE org = $1 AND project = $2 AND record_id = $3 AND number = $4

-- name: add-change
INSERT INTO capability_changes (
    org, project, record_id, sequence, change, principal, version, pattern_id, tag, details,
    request_id, published
)
SELECT $1, $2, $3, coalesce(max(sequence), 0) + 1, $4, $5, $6, $7, $8, $9::jsonb, $10, $11
FROM capability_changes
WHERE org = $1 AND project = $2 AND record_id = $3

-- name: describe-as
-- What a behaviour is found by, where the record stands for it; $7: it is listed from now on, for
-- it has a given name and has succeeded.
UPDATE workflow_pattern
SET document = $5, terms = $6::jsonb, listed = listed OR $7, description = $8, updated_at = now()
WHERE org = $1 AND project = $2 AND pattern_id = $3
    AND (
        SELECT record_id
        FROM behaviour
        WHERE org = $1 AND project = $2 AND pattern_id = $3
    ) = $4
RETURNING pattern_id

-- name: adopt-behaviour
-- A copy of another scope's behaviour, without what was learned there.
WITH made AS (
    INSERT INTO workflow_pattern (
        org, project, pattern_id, description, document, code, code_hash, structure,
        parameters_schema, tools_used, created_by, terms, source, listed
    )
    SELECT
        $1, $2, $3, description, document, code, code_hash, structure, parameters_schema,
        tools_used, created_by, terms, source, listed AND $7
    FROM workflow_pattern
    WHERE org = $4 AND project = $5 AND pattern_id = $6
    ON CONFLICT DO NOTHING
    RETURNING org, project, pattern_id, listed
), found AS (
    INSERT INTO search_vector (org, project, kind, id, model, listed, embedding)
    SELECT
        made.org, made.project, source.kind, made.pattern_id::text, source.model, made.listed,
        source.embedding
    FROM made
    JOIN search_vector source
        ON source.org = $4 AND source.project = $5 AND source.kind = 'capability'
        AND source.id = $6::uuid::text
)
INSERT INTO capability_usage (org, project, pattern_id)
SELECT org, project, pattern_id
FROM made
ON CONFLICT DO NOTHING

-- name: source-version
SELECT
    version.pattern_id, pattern.code_hash,
    coalesce(version.description, pattern.description) AS description
FROM capability_versions version
JOIN workflow_pattern pattern USING (org, project, pattern_id)
WHERE org = $1 AND project = $2 AND version.record_id = $3 AND version.number = $4

-- name: fork-record
-- Its behaviour has a given name from now on, so it is listed.
WITH shown AS (
    UPDATE workflow_pattern
    SET listed = true, updated_at = now()
    WHERE org = $1 AND project = $2 AND pattern_id = $9 AND NOT listed
), made AS (
    INSERT INTO capability_records (
        org, project, record_id, latest, owner, name, namespace, action, forked_from
    )
    VALUES ($1, $2, $3, 1, $4, $5, $6, $7, $8)
    RETURNING org, project, record_id
)
INSERT INTO capability_versions (
    org, project, record_id, number, pattern_id, created_by, description
)
SELECT org, project, record_id, 1, $9, $4, $10
FROM made

-- name: merged-from
SELECT details ->> 'merged_from'
FROM capability_changes
WHERE org = $1 AND project = $2 AND record_id = $3 AND details ? 'merged_from'
ORDER BY sequence
LIMIT 1

-- name: set-origin
UPDATE capability_records
SET forked_from = $4
WHERE org = $1 AND project = $2 AND record_id = $3

-- name: unpublished-changes
SELECT change.*, record.name
FROM capability_changes change
JOIN capability_records record USING (org, project, record_id)
WHERE NOT published
ORDER BY at
LIMIT $1

-- name: mark-published
UPDATE capability_changes change
SET published = true
FROM unnest($1::text[], $2::text[], $3::uuid[]) AS said (org, project, request_id)
WHERE change.org = said.org AND change.project = said.project
    AND change.request_id = said.request_id

-- name: hash-of-code
SELECT code_hash FROM workflow_pattern WHERE org = $1 AND project = $2 AND pattern_id = $3
