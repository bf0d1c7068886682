-- Nearest by meaning. In functions of their own for their settings: the index looks at 100
-- candidates and goes on until enough of them belong to the scope, nearest first.
CREATE FUNCTION nearest_tools(
    of_org text, of_project text, of_model text, wanted vector, at_most integer
)
RETURNS SETOF text
LANGUAGE sql STABLE
SET hnsw.ef_search = 100
SET hnsw.iterative_scan = 'strict_order'
BEGIN ATOMIC
    SELECT tool_id
    FROM tool_schema
    WHERE org = of_org AND project = of_project AND embedding_model = of_model
    ORDER BY embedding <=> wanted
    LIMIT at_most;
END;

CREATE FUNCTION nearest_capabilities(
    of_org text, of_project text, of_model text, wanted vector, at_most integer
)
RETURNS SETOF text
LANGUAGE sql STABLE
SET hnsw.ef_search = 100
SET hnsw.iterative_scan = 'strict_order'
BEGIN ATOMIC
    SELECT pattern_id::text
    FROM workflow_pattern
    WHERE org = of_org AND project = of_project AND listed AND embedding_model = of_model
    ORDER BY embedding <=> wanted
    LIMIT at_most;
END;
