-- name: get-elicitation
SELECT may_elicit, set_by, set_at
FROM elicitation
WHERE org = $1 AND project = $2 AND principal = $3
ORDER BY setting_id DESC
LIMIT 1

-- name: set-elicitation
-- Nothing where it is set so already.
INSERT INTO elicitation (org, project, principal, may_elicit, set_by, set_at)
SELECT $1, $2, $3, $4::boolean, $5, $6::timestamptz
WHERE $4::boolean IS DISTINCT FROM (
    SELECT may_elicit
    FROM elicitation
    WHERE org = $1 AND project = $2 AND principal = $3
    ORDER BY setting_id DESC
    LIMIT 1
)
