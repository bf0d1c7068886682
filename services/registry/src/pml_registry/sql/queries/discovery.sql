-- name: weigh-tools
-- $3 to $11: arguments of the function; $5 are the distinct terms, whose weights are returned.
SELECT
    candidate.id, tool.server, candidate.cosines,
    CASE
        WHEN tool.terms IS NULL THEN ARRAY(
            SELECT weighed.weight
            FROM unnest($5::text[]) WITH ORDINALITY AS wanted (term, place)
            LEFT JOIN weighed_terms(NULL, tool.document) AS weighed USING (term)
            ORDER BY wanted.place
        )
        ELSE ARRAY(SELECT (tool.terms ->> wanted.term)::real FROM unnest($5) AS wanted (term))
    END AS weights
FROM search_candidates($1, $2, 'tool', $3, $4, $5, $6, $7, $8, $9, $10, $11) AS candidate
JOIN tool_schema tool ON tool.tool_id = candidate.id
WHERE tool.org = $1 AND tool.project = $2

-- name: weigh-capabilities
-- The same; $12: a private one is found by this principal, its owner, alone. Ids become uuids before
-- they meet a table: under row-level security an index is not looked into by a value that a function
-- other than a leakproof one has computed beside it.
WITH candidate AS MATERIALIZED (
    SELECT id, id::uuid AS behaviour, cosines
    FROM search_candidates($1, $2, 'capability', $3, $4, $5, $6, $7, $8, $9, $10, $11)
)
SELECT
    candidate.id, usage.usage_count - usage.caller_faults - usage.environment_faults AS judged,
    usage.success_count, usage.success_value, candidate.cosines,
    CASE
        WHEN pattern.terms IS NULL THEN ARRAY(
            SELECT weighed.weight
            FROM unnest($5::text[]) WITH ORDINALITY AS wanted (term, place)
            LEFT JOIN weighed_terms(NULL, pattern.document) AS weighed USING (term)
            ORDER BY wanted.place
        )
        ELSE ARRAY(SELECT (pattern.terms ->> wanted.term)::real FROM unnest($5) AS wanted (term))
    END AS weights
FROM candidate
JOIN workflow_pattern pattern ON pattern.pattern_id = candidate.behaviour
JOIN capability_usage usage USING (org, project, pattern_id)
WHERE pattern.org = $1 AND pattern.project = $2 AND pattern.listed
    AND (
        pattern.found_by IS NULL
        OR ($12::text IS NULL AND pattern.found_by <> '{}')
        OR $12 = ANY (pattern.found_by)
    )

-- name: tools-by-id
SELECT tool_id, definition
FROM tool_schema
WHERE org = $1 AND project = $2 AND tool_id = ANY ($3)

-- name: capabilities-by-id
SELECT
    pattern_id, name, description, parameters_schema, tools_used, usage_count, success_count,
    success_streak, mean_duration_ms, caller_faults, environment_faults, success_value,
    success_low, success_high, health, good_version, source, code
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
