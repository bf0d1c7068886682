-- name: nearest-tools
SELECT nearest_tools($1, $2, $3, $4::real[]::vector, $5) AS id

-- name: nearest-capabilities
SELECT nearest_capabilities($1, $2, $3, $4::real[]::vector, $5) AS id

-- name: weigh-tools
-- Any of the intent's words makes a candidate: its AND query with every & turned into |.
WITH question AS (
    SELECT
        replace(plainto_tsquery('english', $4)::text, ' & ', ' | ')::tsquery AS any_word,
        tsvector_to_array(to_tsvector('english', $4)) AS words
),
candidate AS (
    SELECT near.tool_id FROM unnest($3::text[]) AS near (tool_id)
    UNION
    (
        SELECT tool.tool_id
        FROM tool_schema tool, question
        WHERE tool.org = $1 AND tool.project = $2 AND tool.words @@ question.any_word
        ORDER BY ts_rank(tool.words, question.any_word) DESC, tool.tool_id
        LIMIT $7
    )
)
SELECT
    tool.tool_id AS id,
    CASE
        WHEN tool.embedding_model = $5 THEN 1 - (tool.embedding <=> $6::real[]::vector)
        ELSE 0
    END AS cosine,
    (
        SELECT count(*)::double precision / greatest(cardinality(question.words), 1)
        FROM (
            SELECT unnest(question.words)
            INTERSECT
            SELECT unnest(tsvector_to_array(tool.words))
        ) AS shared
    ) AS coverage
FROM candidate
JOIN tool_schema tool USING (tool_id), question
WHERE tool.org = $1 AND tool.project = $2

-- name: weigh-capabilities
WITH question AS (
    SELECT
        replace(plainto_tsquery('english', $4)::text, ' & ', ' | ')::tsquery AS any_word,
        tsvector_to_array(to_tsvector('english', $4)) AS words
),
candidate AS (
    SELECT near.id::uuid AS pattern_id FROM unnest($3::text[]) AS near (id)
    UNION
    (
        SELECT pattern.pattern_id
        FROM workflow_pattern pattern, question
        WHERE pattern.org = $1 AND pattern.project = $2 AND pattern.listed
            AND pattern.words @@ question.any_word
        ORDER BY ts_rank(pattern.words, question.any_word) DESC, pattern.pattern_id
        LIMIT $7
    )
)
SELECT
    pattern.pattern_id::text AS id,
    CASE
        WHEN pattern.embedding_model = $5 THEN 1 - (pattern.embedding <=> $6::real[]::vector)
        ELSE 0
    END AS cosine,
    (
        SELECT count(*)::double precision / greatest(cardinality(question.words), 1)
        FROM (
            SELECT unnest(question.words)
            INTERSECT
            SELECT unnest(tsvector_to_array(pattern.words))
        ) AS shared
    ) AS coverage
FROM candidate
JOIN workflow_pattern pattern USING (pattern_id), question
WHERE pattern.org = $1 AND pattern.project = $2 AND pattern.listed

-- name: tools-by-id
SELECT tool_id, definition
FROM tool_schema
WHERE org = $1 AND project = $2 AND tool_id = ANY ($3)

-- name: capabilities-by-id
SELECT * FROM capability WHERE org = $1 AND project = $2 AND listed AND pattern_id = ANY ($3)
