-- name: meet-server
INSERT INTO tool_server (org, project, server) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING

-- name: lock-server
SELECT listed_at FROM tool_server WHERE org = $1 AND project = $2 AND server = $3 FOR UPDATE

-- name: server-listed-at
SELECT listed_at FROM tool_server WHERE org = $1 AND project = $2 AND server = $3

-- name: server-tools
-- Without terms, a tool was embedded from a former kind of document: its vectors are stale.
SELECT
    tool_id, definition_hash,
    ARRAY(
        SELECT found.model
        FROM search_vector found
        WHERE found.org = $1 AND found.project = $2 AND found.kind = 'tool'
            AND found.id = tool.tool_id AND tool.terms IS NOT NULL
    ) AS models
FROM tool_schema tool
WHERE org = $1 AND project = $2 AND server = $3

-- name: server-quarantine
SELECT quarantined FROM tool_server WHERE org = $1 AND project = $2 AND server = $3

-- name: note-listing
UPDATE tool_server SET listed_at = greatest(listed_at, $4), quarantined = $5
WHERE org = $1 AND project = $2 AND server = $3

-- name: save-tool
INSERT INTO tool_schema (
    org, project, server, name, definition, definition_hash, document, terms
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8::jsonb)
ON CONFLICT (org, project, tool_id) DO UPDATE
SET definition = excluded.definition,
    definition_hash = excluded.definition_hash,
    document = excluded.document,
    terms = excluded.terms,
    updated_at = now()

-- name: remove-tools
DELETE FROM tool_schema WHERE org = $1 AND project = $2 AND tool_id = ANY ($3)

-- name: list-tools
SELECT tool.definition, output.shape
FROM tool_schema tool
LEFT JOIN tool_output output USING (org, project, tool_id, definition_hash)
WHERE tool.org = $1 AND tool.project = $2 AND ($3::text IS NULL OR tool.server = $3)
ORDER BY tool.tool_id COLLATE "C"

-- name: list-quarantined
SELECT quarantined
FROM tool_server
WHERE org = $1 AND project = $2 AND ($3::text IS NULL OR server = $3)
ORDER BY server COLLATE "C"

-- name: tool-outputs
SELECT tool_id, definition_hash, shape
FROM tool_output
WHERE org = $1 AND project = $2 AND tool_id = ANY ($3)

-- name: save-output
INSERT INTO tool_output (org, project, tool_id, definition_hash, shape)
VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (org, project, tool_id) DO UPDATE
SET definition_hash = excluded.definition_hash, shape = excluded.shape, learned_at = now()
