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

-- name: seen-capability
-- The capability, and what the handling of a message stated; one row, whatever there is.
SELECT
    inbox.facts, capability.name, capability.named, capability.listed, capability.description,
    capability.tools_used, capability.learning_revision
FROM (SELECT) AS one
LEFT JOIN capability ON org = $1 AND project = $2 AND pattern_id = $3
LEFT JOIN inbox ON inbox.message_id = $4 AND inbox.consumer = $5

-- name: learn-once
-- Statistics and the memory of their message, in one statement; no row: since it was read the
-- capability learned, or was named, or the message was handled.
WITH held AS (
    SELECT
    FROM capability_usage
    WHERE org = $1 AND project = $2 AND pattern_id = $3 AND learning_revision = $10
        AND EXISTS (
            SELECT
            FROM capability_records
            WHERE org = $1 AND project = $2 AND pattern_id = $3 AND name = $11
        )
    FOR UPDATE
), noted AS (
    INSERT INTO inbox (message_id, consumer, facts)
    SELECT $12, $13, $14
    FROM held
    ON CONFLICT DO NOTHING
    RETURNING message_id
), shown AS (
    UPDATE workflow_pattern
    SET listed = $9, updated_at = now()
    FROM noted
    WHERE org = $1 AND project = $2 AND pattern_id = $3 AND listed <> $9
)
UPDATE capability_usage
SET usage_count = $4,
    success_count = $5,
    mean_duration_ms = $6,
    learning = $7,
    learning_revision = $8,
    learned_at = now()
FROM noted
WHERE org = $1 AND project = $2 AND pattern_id = $3
RETURNING pattern_id

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
