-- name: lock-dependencies
SELECT pg_advisory_xact_lock(hashtextextended('dependencies ' || $1::text || '.' || $2::text, 0))

-- name: needs
-- The relations that a cycle may close; a template that runs show stays one.
SELECT
    from_capability_id, to_capability_id,
    CASE base_source WHEN 'template' THEN base_source ELSE edge_source END AS edge_source
FROM capability_dependency
WHERE org = $1 AND project = $2 AND edge_type IN ('contains', 'dependency')

-- name: add-dependency
INSERT INTO capability_dependency (
    org, project, from_capability_id, to_capability_id, edge_type, edge_source, observed_count,
    confidence_score, shares, base_source, base_confidence
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
ON CONFLICT DO NOTHING

-- name: keep-dependency
-- What a person states does not go with the runs that showed it.
UPDATE capability_dependency
SET base_source = 'inferred', base_confidence = $6
WHERE org = $1 AND project = $2
    AND from_capability_id = $3 AND to_capability_id = $4 AND edge_type = $5
    AND base_source IS NULL

-- name: one-dependency
SELECT
    *,
    shown_name($1, $2, from_capability_id, $6) AS from_name,
    shown_name($1, $2, to_capability_id, $6) AS to_name
FROM capability_dependency
WHERE org = $1 AND project = $2
    AND from_capability_id = $3 AND to_capability_id = $4 AND edge_type = $5

-- name: remove-dependencies
DELETE FROM capability_dependency
WHERE org = $1 AND project = $2
    AND from_capability_id = $3 AND to_capability_id = $4
    AND ($5::text IS NULL OR edge_type = $5)
RETURNING edge_type

-- name: list-dependencies
-- $4: those on others; $5: those of others on it; $6: who asks.
SELECT *
FROM (
    SELECT
        *,
        shown_name($1, $2, from_capability_id, $6) AS from_name,
        shown_name($1, $2, to_capability_id, $6) AS to_name
    FROM capability_dependency
    WHERE org = $1 AND project = $2
        AND (($4 AND from_capability_id = $3) OR ($5 AND to_capability_id = $3))
) AS named
WHERE from_name IS NOT NULL AND to_name IS NOT NULL
    AND (
        $9::double precision IS NULL
        OR (-confidence_score, from_capability_id, to_capability_id, edge_type COLLATE "C")
        > ($9, $10::uuid, $11::uuid, $12::text)
    )
ORDER BY confidence_score DESC, from_capability_id, to_capability_id, edge_type COLLATE "C"
LIMIT $7 OFFSET $8

-- name: total-dependencies
SELECT count(*)
FROM capability_dependency
WHERE org = $1 AND project = $2
    AND (($4 AND from_capability_id = $3) OR ($5 AND to_capability_id = $3))
    AND shown_name($1, $2, from_capability_id, $6) IS NOT NULL
    AND shown_name($1, $2, to_capability_id, $6) IS NOT NULL

-- name: count-dependencies
-- Those whose other end the principal $4 sees.
SELECT
    asked.id,
    (
        SELECT count(*) FROM capability_dependency
        WHERE org = $1 AND project = $2 AND from_capability_id = asked.id
            AND shown_name($1, $2, to_capability_id, $4) IS NOT NULL
    ) + (
        SELECT count(*) FROM capability_dependency
        WHERE org = $1 AND project = $2 AND to_capability_id = asked.id
            AND shown_name($1, $2, from_capability_id, $4) IS NOT NULL
    ) AS total
FROM unnest($3::uuid[]) AS asked (id)

-- name: needs-of-each
-- Those of a behaviour on others that everybody in the scope sees.
SELECT found.*
FROM unnest($3::uuid[]) AS asked (id)
CROSS JOIN LATERAL (
    SELECT *
    FROM (
        SELECT
            *,
            shown_name($1, $2, from_capability_id, NULL) AS from_name,
            shown_name($1, $2, to_capability_id, '') AS to_name
        FROM capability_dependency
        WHERE org = $1 AND project = $2
            AND from_capability_id = asked.id AND edge_type IN ('contains', 'dependency')
    ) AS named
    WHERE to_name IS NOT NULL
    ORDER BY confidence_score DESC, from_capability_id, to_capability_id, edge_type
    LIMIT $4
) AS found

-- name: note-calls
-- The capabilities that a program calls by its text: no run has shown it yet.
INSERT INTO capability_dependency (
    org, project, from_capability_id, to_capability_id, edge_type, edge_source, observed_count,
    confidence_score, base_source, base_confidence
)
SELECT $1, $2, $3, pattern_id, 'contains', 'inferred', 0, $5, 'inferred', $5
FROM workflow_pattern
WHERE org = $1 AND project = $2 AND pattern_id = ANY ($4::uuid[]) AND pattern_id <> $3
ORDER BY pattern_id
ON CONFLICT (org, project, from_capability_id, to_capability_id, edge_type) DO UPDATE
SET base_source = excluded.base_source, base_confidence = excluded.base_confidence
WHERE capability_dependency.base_source IS NULL

-- name: peer
SELECT pattern_id, description, tools_used, listed
FROM workflow_pattern
WHERE org = $1 AND project = $2 AND pattern_id = $3

-- name: peers-by-tools
-- Listed capabilities that share a tool with another, as the latest version of a record.
SELECT pattern_id, description, tools_used, listed
FROM workflow_pattern pattern
WHERE org = $1 AND project = $2 AND listed AND pattern_id <> $3
    AND tools_used && (
        SELECT tools_used
        FROM workflow_pattern
        WHERE org = $1 AND project = $2 AND pattern_id = $3
    )
    AND EXISTS (
        SELECT
        FROM capability_versions version
        JOIN capability_records record USING (org, project, record_id)
        WHERE org = $1 AND project = $2 AND version.pattern_id = pattern.pattern_id
            AND version.number = record.latest
    )
LIMIT $4

-- name: peers-by-id
SELECT pattern_id, description, tools_used, listed
FROM workflow_pattern pattern
WHERE org = $1 AND project = $2 AND listed AND pattern_id = ANY ($3::uuid[])
    AND EXISTS (
        SELECT
        FROM capability_versions version
        JOIN capability_records record USING (org, project, record_id)
        WHERE org = $1 AND project = $2 AND version.pattern_id = pattern.pattern_id
            AND version.number = record.latest
    )

-- name: relate
-- Two capabilities are related once by each rule, in whichever direction came first. What runs show
-- already is related by the rule, too.
INSERT INTO capability_dependency (
    org, project, from_capability_id, to_capability_id, edge_type, edge_source, observed_count,
    confidence_score, base_source, base_confidence
)
SELECT
    $1, $2, $3, related.id, related.edge_type, 'inferred', 0, related.confidence, 'inferred',
    related.confidence
FROM unnest($4::uuid[], $5::text[], $6::double precision[])
    AS related (id, edge_type, confidence)
WHERE NOT EXISTS (
    SELECT FROM capability_dependency reverse
    WHERE reverse.org = $1 AND reverse.project = $2
        AND reverse.from_capability_id = related.id AND reverse.to_capability_id = $3
        AND reverse.edge_type = related.edge_type AND reverse.base_source IS NOT NULL
)
ORDER BY related.id, related.edge_type
ON CONFLICT (org, project, from_capability_id, to_capability_id, edge_type) DO UPDATE
SET base_source = excluded.base_source,
    base_confidence = excluded.base_confidence,
    confidence_score = greatest(capability_dependency.confidence_score, excluded.base_confidence)
WHERE capability_dependency.base_source IS NULL
RETURNING true
