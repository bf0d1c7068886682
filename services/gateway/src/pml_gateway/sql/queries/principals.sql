-- name: record-principal-deletion
INSERT INTO principal_deletion (org, project, deletion_id, principal, deleted_by, deleted_at)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT DO NOTHING

-- name: list-principal-deletions
SELECT deletion_id, principal, deleted_by, deleted_at
FROM principal_deletion
WHERE org = $1 AND project = $2
ORDER BY deleted_at DESC, deletion_id
LIMIT $3
