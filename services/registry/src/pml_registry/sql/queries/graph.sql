-- name: lock-provides
SELECT pg_advisory_xact_lock(hashtextextended('provides ' || $1::text || '.' || $2::text, 0))

-- name: scopes-without-provides
SELECT DISTINCT org, project
FROM tool_schema
WHERE provides_hash IS DISTINCT FROM definition_hash
LIMIT $1

-- name: provides-catalog
-- is_stale: the tool's provides edges are not those of its definition.
SELECT
    tool_id, definition, definition_hash,
    provides_hash IS DISTINCT FROM definition_hash AS is_stale
FROM tool_schema
WHERE org = $1 AND project = $2
ORDER BY tool_id COLLATE "C"

-- name: stored-provides
SELECT from_tool_id, to_tool_id, coverage
FROM tool_dependency
WHERE org = $1 AND project = $2 AND edge_type = 'provides'

-- name: remove-provides
DELETE FROM tool_dependency
USING unnest($3::text[], $4::text[]) AS removed (from_tool_id, to_tool_id)
WHERE org = $1 AND project = $2 AND edge_type = 'provides'
    AND tool_dependency.from_tool_id = removed.from_tool_id
    AND tool_dependency.to_tool_id = removed.to_tool_id

-- name: save-provides
INSERT INTO tool_dependency (
    org, project, from_tool_id, to_tool_id, edge_type, edge_source, observed_count, coverage,
    field_mapping
)
SELECT
    $1, $2, found.from_tool_id, found.to_tool_id, 'provides', 'inferred', 0, found.coverage,
    found.field_mapping::json
FROM unnest($3::text[], $4::text[], $5::text[], $6::text[])
    AS found (from_tool_id, to_tool_id, coverage, field_mapping)
ON CONFLICT (org, project, from_tool_id, to_tool_id, edge_type) DO UPDATE
SET coverage = excluded.coverage,
    field_mapping = excluded.field_mapping

-- name: note-provides
-- Of tools whose definition is still the one that was read.
UPDATE tool_schema
SET provides_hash = tool_schema.definition_hash
FROM unnest($3::text[], $4::text[]) AS done (tool_id, definition_hash)
WHERE tool_schema.org = $1 AND tool_schema.project = $2
    AND tool_schema.tool_id = done.tool_id
    AND tool_schema.definition_hash = done.definition_hash

-- name: graph-capabilities
SELECT
    pattern_id, name, description, tools_used,
    CASE WHEN visibility = 'private' THEN owner END AS private_to
FROM capability
WHERE org = $1 AND project = $2 AND listed
ORDER BY usage_count DESC, name COLLATE "C"
LIMIT $3

-- name: graph-tools
SELECT tool_id, definition
FROM tool_schema
WHERE org = $1 AND project = $2
ORDER BY tool_id COLLATE "C"
LIMIT $3

-- name: graph-dependencies
SELECT
    from_capability_id, to_capability_id, edge_type, edge_source, observed_count, confidence_score
FROM capability_dependency
WHERE org = $1 AND project = $2
    AND from_capability_id = ANY ($3::uuid[]) AND to_capability_id = ANY ($3)
ORDER BY confidence_score DESC, from_capability_id, to_capability_id, edge_type
LIMIT $4

-- name: graph-tool-edges
SELECT
    from_tool_id, to_tool_id, edge_type, edge_source, observed_count, coverage, field_mapping
FROM tool_dependency
WHERE org = $1 AND project = $2
    AND from_tool_id = ANY ($3::text[]) AND to_tool_id = ANY ($3)
ORDER BY observed_count DESC, from_tool_id, to_tool_id, edge_type
LIMIT $4

-- name: graph-mixed-edges
SELECT
    from_node, to_node, edge_type, edge_source, observed_count, confidence_score
FROM capability_tool_edge
WHERE org = $1 AND project = $2
    AND from_node = ANY ($3::text[]) AND to_node = ANY ($3)
ORDER BY
    confidence_score DESC, from_node COLLATE "C", to_node COLLATE "C", edge_type COLLATE "C"
LIMIT $4
