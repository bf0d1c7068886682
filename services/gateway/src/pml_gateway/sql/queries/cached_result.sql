-- name: keep-result
INSERT INTO cached_result (
    org, project, capability_id, revision, digest, workflow_id, expires_at
)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (org, project, capability_id, revision, digest) DO UPDATE
SET workflow_id = excluded.workflow_id, expires_at = excluded.expires_at

-- name: find-result
SELECT workflow_id, expires_at
FROM cached_result
WHERE org = $1 AND project = $2 AND capability_id = $3 AND revision = $4 AND digest = $5

-- name: drop-results
DELETE FROM cached_result
WHERE org = $1 AND project = $2 AND capability_id = $3 AND revision <> $4

-- name: forget-results
-- Over all scopes: the clock works for the gateway, not for a caller.
DELETE FROM cached_result
WHERE expires_at <= $1
