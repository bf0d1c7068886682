-- name: weigh-tools
-- $3 ids of the nearest, $4 distinct terms, $5 and $6 the parts' numbers (from 1) and terms, $7 the
-- number of candidates of each part by words, $8 how many of a term are read, the heaviest; $9 the
-- model, $10 the parts' vectors.
WITH posting AS (
    SELECT asked.term, heaviest.id, heaviest.weight
    FROM unnest($4::text[]) AS asked (term)
    CROSS JOIN LATERAL (
        SELECT found.id, found.weight
        FROM search_term found
        WHERE found.org = $1 AND found.project = $2 AND found.kind = 'tool'
            AND found.term = asked.term
        ORDER BY found.weight DESC, found.id DESC
        LIMIT $8
    ) AS heaviest
),
worded AS (
    SELECT
        part.number, posting.id,
        row_number() OVER (
            PARTITION BY part.number ORDER BY sum(posting.weight) DESC, posting.id
        ) AS place
    FROM unnest($5::integer[], $6::text[]) AS part (number, term)
    JOIN posting USING (term)
    GROUP BY part.number, posting.id
),
candidate AS (
    SELECT near.id FROM unnest($3::text[]) AS near (id)
    UNION
    SELECT id FROM worded WHERE place <= ($7::integer[])[number]
),
asked AS MATERIALIZED (
    SELECT array_agg(part.vector::vector ORDER BY part.place) AS vectors
    FROM unnest($10::text[]) WITH ORDINALITY AS part (vector, place)
)
SELECT
    tool.tool_id AS id, tool.server,
    ARRAY(
        SELECT coalesce(1 - (stored.embedding <=> part.vector), 0)
        FROM unnest(asked.vectors) WITH ORDINALITY AS part (vector, place)
        ORDER BY part.place
    ) AS cosines,
    CASE
        WHEN tool.terms IS NULL THEN ARRAY(
            SELECT weighed.weight
            FROM unnest($4) WITH ORDINALITY AS wanted (term, place)
            LEFT JOIN weighed_terms(NULL, tool.document) AS weighed USING (term)
            ORDER BY wanted.place
        )
        ELSE ARRAY(SELECT (tool.terms ->> wanted.term)::real FROM unnest($4) AS wanted (term))
    END AS weights
FROM candidate
CROSS JOIN asked
JOIN tool_schema tool ON tool.tool_id = candidate.id
LEFT JOIN search_vector stored
    ON stored.org = $1 AND stored.project = $2 AND stored.kind = 'tool'
    AND stored.id = candidate.id AND stored.model = $9
WHERE tool.org = $1 AND tool.project = $2

-- name: weigh-capabilities
-- Ids become uuids before they meet a table: under row-level security an index is not looked into by
-- a value that a function other than a leakproof one has computed beside it.
WITH posting AS (
    SELECT asked.term, heaviest.id, heaviest.weight
    FROM unnest($4::text[]) AS asked (term)
    CROSS JOIN LATERAL (
        SELECT found.id, found.weight
        FROM search_term found
        WHERE found.org = $1 AND found.project = $2 AND found.kind = 'capability'
            AND found.term = asked.term
        ORDER BY found.weight DESC, found.id DESC
        LIMIT $8
    ) AS heaviest
),
worded AS (
    SELECT
        part.number, posting.id,
        row_number() OVER (
            PARTITION BY part.number ORDER BY sum(posting.weight) DESC, posting.id
        ) AS place
    FROM unnest($5::integer[], $6::text[]) AS part (number, term)
    JOIN posting USING (term)
    GROUP BY part.number, posting.id
),
candidate AS (
    SELECT near.id, near.id::uuid AS behaviour FROM unnest($3::text[]) AS near (id)
    UNION
    SELECT id, id::uuid FROM worded WHERE place <= ($7::integer[])[number]
),
asked AS MATERIALIZED (
    SELECT array_agg(part.vector::vector ORDER BY part.place) AS vectors
    FROM unnest($10::text[]) WITH ORDINALITY AS part (vector, place)
)
SELECT
    pattern.pattern_id::text AS id, usage.usage_count, usage.success_count,
    ARRAY(
        SELECT coalesce(1 - (stored.embedding <=> part.vector), 0)
        FROM unnest(asked.vectors) WITH ORDINALITY AS part (vector, place)
        ORDER BY part.place
    ) AS cosines,
    CASE
        WHEN pattern.terms IS NULL THEN ARRAY(
            SELECT weighed.weight
            FROM unnest($4) WITH ORDINALITY AS wanted (term, place)
            LEFT JOIN weighed_terms(NULL, pattern.document) AS weighed USING (term)
            ORDER BY wanted.place
        )
        ELSE ARRAY(SELECT (pattern.terms ->> wanted.term)::real FROM unnest($4) AS wanted (term))
    END AS weights
FROM candidate
CROSS JOIN asked
JOIN workflow_pattern pattern ON pattern.pattern_id = candidate.behaviour
JOIN capability_usage usage USING (org, project, pattern_id)
LEFT JOIN search_vector stored
    ON stored.org = $1 AND stored.project = $2 AND stored.kind = 'capability'
    AND stored.id = candidate.id AND stored.model = $9
WHERE pattern.org = $1 AND pattern.project = $2 AND pattern.listed
    -- Of a record the latest version alone is found; $11: a private one by this principal, its
    -- owner, alone.
    AND EXISTS (
        SELECT
        FROM capability_versions version
        JOIN capability_records record USING (org, project, record_id)
        WHERE org = $1 AND project = $2 AND version.pattern_id = pattern.pattern_id
            AND version.number = record.latest
            AND (record.visibility <> 'private' OR $11::text IS NULL OR record.owner = $11)
    )

-- name: tools-by-id
SELECT tool_id, definition
FROM tool_schema
WHERE org = $1 AND project = $2 AND tool_id = ANY ($3)

-- name: capabilities-by-id
SELECT *
FROM capability
WHERE org = $1 AND project = $2 AND listed AND pattern_id = ANY ($3)
    AND (visibility <> 'private' OR $4::text IS NULL OR owner = $4)

-- name: tools-judged
SELECT tool_id, definition -> 'annotations' AS annotations
FROM tool_schema
WHERE org = $1 AND project = $2 AND tool_id = ANY ($3)

-- name: capabilities-judged
-- A behaviour may stand in several records: under all their names.
SELECT
    pattern.pattern_id::text AS id, pattern.tools_used,
    ARRAY(
        SELECT name.name
        FROM capability_versions version
        JOIN capability_name name USING (org, project, record_id)
        WHERE org = $1 AND project = $2 AND version.pattern_id = pattern.pattern_id
    ) AS names
FROM workflow_pattern pattern
WHERE org = $1 AND project = $2 AND pattern_id = ANY ($3)
