-- name: trust-tools
-- In one order, so that two gateways that meet the same tools do not deadlock.
INSERT INTO accepted_tool (org, project, tool_id, definition, accepted_at)
SELECT $1, $2, tool_id, definition::json, $5
FROM unnest($3::text[], $4::text[]) AS listed (tool_id, definition)
ORDER BY tool_id COLLATE "C"
ON CONFLICT DO NOTHING

-- name: accepted-tools
SELECT definition
FROM accepted_tool
WHERE org = $1 AND project = $2 AND tool_id = ANY ($3)

-- name: accept-tools
INSERT INTO accepted_tool (org, project, tool_id, definition, accepted_by, accepted_at)
SELECT $1, $2, tool_id, definition::json, $5, $6
FROM unnest($3::text[], $4::text[]) AS listed (tool_id, definition)
ORDER BY tool_id COLLATE "C"
ON CONFLICT (org, project, tool_id) DO UPDATE
SET definition = excluded.definition,
    accepted_by = excluded.accepted_by,
    accepted_at = excluded.accepted_at
