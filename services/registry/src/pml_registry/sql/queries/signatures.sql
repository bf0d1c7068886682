-- name: behaviour-code
SELECT code, code_hash
FROM workflow_pattern
WHERE org = $1 AND project = $2 AND pattern_id = $3

-- name: sign-version
-- $6, the signature before: no row changes where another has signed meanwhile.
UPDATE capability_versions
SET key_id = $7, signature = $8, signed_at = clock_timestamp()
WHERE org = $1 AND project = $2 AND record_id = $3 AND number = $4 AND pattern_id = $5
    AND signature IS NOT DISTINCT FROM $6

-- name: versions-of-other-keys
-- Over all scopes: the clock works for the registry, not for a caller. $2 to $5: the version after
-- which they begin.
SELECT
    version.org, version.project, version.record_id, version.number, version.pattern_id,
    version.key_id, version.signature, pattern.code, pattern.code_hash
FROM capability_versions version
JOIN workflow_pattern pattern USING (org, project, pattern_id)
WHERE version.key_id IS DISTINCT FROM $1
    AND (version.org, version.project, version.record_id, version.number)
        > ($2::text, $3::text, $4::uuid, $5::integer)
ORDER BY version.org, version.project, version.record_id, version.number
LIMIT $6
