-- name: add-speculation
-- Nothing where the principal has so many in the hour that begins at $6.
INSERT INTO speculation (org, project, workflow_id, principal, speculated_at)
SELECT $1, $2, $3, $4, $5
WHERE $7 > (
    SELECT count(*)
    FROM speculation
    WHERE org = $1 AND project = $2 AND principal = $4
        AND speculated_at >= $6::timestamptz AND speculated_at < $6 + interval '1 hour'
)
ON CONFLICT DO NOTHING

-- name: judge-speculation
-- Nothing for the run of no guess, or where the principal gave so many other opinions in the hour
-- that begins at $7.
INSERT INTO speculation_opinion (org, project, workflow_id, principal, useful, given_at)
SELECT $1, $2, $3, $4, $5, $6
FROM speculation
WHERE org = $1 AND project = $2 AND workflow_id = $3 AND $8 > (
    SELECT count(*)
    FROM speculation_opinion
    WHERE org = $1 AND project = $2 AND principal = $4 AND workflow_id <> $3
        AND given_at >= $7::timestamptz AND given_at < $7 + interval '1 hour'
)
ON CONFLICT (org, project, workflow_id, principal) DO UPDATE
SET useful = excluded.useful, given_at = excluded.given_at

-- name: list-speculations
SELECT made.workflow_id, made.principal, made.speculated_at, workflow.state, workflow.error
FROM (
    SELECT *
    FROM speculation
    WHERE org = $1 AND project = $2 AND speculated_at >= $3
    ORDER BY speculated_at DESC
    LIMIT $4
) AS made
LEFT JOIN workflow USING (org, project, workflow_id)

-- name: list-speculation-opinions
SELECT workflow_id, principal, useful, given_at
FROM speculation_opinion
WHERE org = $1 AND project = $2 AND given_at >= $3
ORDER BY given_at DESC
LIMIT $4

-- name: forget-speculations
-- Over all scopes: the clock works for the gateway, not for a caller.
DELETE FROM speculation
WHERE speculated_at < $1
