-- name: lock-dependencies
SELECT pg_advisory_xact_lock(hashtextextended('dependencies ' || $1::text || '.' || $2::text, 0))

-- name: needs
-- The relations that a cycle may close.
SELECT from_capability_id, to_capability_id, edge_source
FROM capability_dependency
WHERE org = $1 AND project = $2 AND edge_type IN ('contains', 'dependency')

-- name: add-dependency
INSERT INTO capability_dependency (
    org, project, from_capability_id, to_capability_id, edge_type, edge_source, observed_count,
    confidence_score
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT DO NOTHING
RETURNING true

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
    confidence_score
)
SELECT $1, $2, $3, pattern_id, 'contains', 'inferred', 0, $5
FROM workflow_pattern
WHERE org = $1 AND project = $2 AND pattern_id = ANY ($4::uuid[]) AND pattern_id <> $3
ON CONFLICT DO NOTHING

-- name: count-calls
-- Calls between capabilities and the memory of their messages, in one statement and in one order;
-- those of messages that were handled before are left out. Returns the messages that name a
-- capability which does not exist, of which nothing is counted, and the edges that are new.
WITH shown AS (
    SELECT *
    FROM unnest($1::uuid[], $2::text[], $3::text[], $4::uuid[], $5::uuid[], $6::integer[])
        AS shown (message_id, org, project, from_capability_id, to_capability_id, observed_count)
), missing AS (
    SELECT DISTINCT message_id
    FROM shown
    CROSS JOIN LATERAL unnest(ARRAY[from_capability_id, to_capability_id]) AS called (id)
    WHERE NOT EXISTS (
        SELECT FROM workflow_pattern
        WHERE org = shown.org AND project = shown.project AND pattern_id = called.id
    )
), noted AS (
    INSERT INTO inbox (message_id, consumer, org, project)
    SELECT DISTINCT message_id, $7::text, org, project
    FROM shown
    WHERE message_id NOT IN (SELECT message_id FROM missing)
    ORDER BY message_id
    ON CONFLICT DO NOTHING
    RETURNING message_id
), counted AS (
    SELECT
        org, project, from_capability_id, to_capability_id,
        sum(observed_count)::integer AS observed_count
    FROM shown
    JOIN noted USING (message_id)
    GROUP BY org, project, from_capability_id, to_capability_id
), stored AS (
    INSERT INTO capability_dependency (
        org, project, from_capability_id, to_capability_id, edge_type, observed_count, edge_source,
        confidence_score
    )
    SELECT
        org, project, from_capability_id, to_capability_id, 'contains', observed_count,
        CASE WHEN observed_count >= $8::integer THEN 'observed' ELSE 'inferred' END,
        observed_count / (observed_count + 1.0)
    FROM counted
    ORDER BY org, project, from_capability_id, to_capability_id
    ON CONFLICT (org, project, from_capability_id, to_capability_id, edge_type) DO UPDATE
    SET observed_count = capability_dependency.observed_count + excluded.observed_count,
        edge_source = CASE
            WHEN capability_dependency.observed_count + excluded.observed_count >= $8 THEN 'observed'
            ELSE capability_dependency.edge_source
        END,
        confidence_score = greatest(
            capability_dependency.confidence_score,
            (capability_dependency.observed_count + excluded.observed_count)
            / (capability_dependency.observed_count + excluded.observed_count + 1.0)
        ),
        last_observed = now()
    -- A row that this statement made has no former version.
    RETURNING org, project, from_capability_id, to_capability_id, xmax = 0 AS made
)
SELECT message_id, NULL AS org, NULL AS project, NULL::uuid AS called_from, NULL::uuid AS called
FROM missing
UNION ALL
SELECT NULL, org, project, from_capability_id, to_capability_id
FROM stored
WHERE made

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
-- Two capabilities are related once by each rule, in whichever direction came first.
INSERT INTO capability_dependency (
    org, project, from_capability_id, to_capability_id, edge_type, edge_source, observed_count,
    confidence_score
)
SELECT $1, $2, $3, related.id, related.edge_type, 'inferred', 0, related.confidence
FROM unnest($4::uuid[], $5::text[], $6::double precision[])
    AS related (id, edge_type, confidence)
WHERE NOT EXISTS (
    SELECT FROM capability_dependency reverse
    WHERE reverse.org = $1 AND reverse.project = $2
        AND reverse.from_capability_id = related.id AND reverse.to_capability_id = $3
        AND reverse.edge_type = related.edge_type
)
ON CONFLICT DO NOTHING
RETURNING true
