-- name: lock-learned
SELECT
    org, project, capability_id, run_count, success_count, success_streak, mean_duration_ms,
    learning, position, state, rule_version, rebuilds, base_position, base, rebuilt_position,
    rebuilt_version, rebuilt, is_stale
FROM learning
WHERE org = $1 AND project = $2 AND capability_id = $3
FOR UPDATE

-- name: list-lessons
-- Of a capability's traces after a position, without what teaches nothing.
SELECT
    id, capability_id, workflow_id, (extract(epoch FROM executed_at) * 1000)::double precision
        AS executed_at_ms,
    success, duration_ms, executed_path, decisions, task_results, priority, dry_run, fault,
    position, user_id
FROM execution_trace
WHERE org = $1 AND project = $2 AND capability_id = $3 AND position > $4 AND position <= $5
ORDER BY position
LIMIT $6

-- name: put-learned
UPDATE learning
SET run_count = $4,
    success_count = $5,
    success_streak = $6,
    mean_duration_ms = $7,
    learning = $8::json,
    position = $4,
    state = $9::json,
    rule_version = $10,
    rebuilds = $11,
    base_position = $12,
    base = $13::json,
    rebuilt_position = $14,
    rebuilt_version = $15,
    rebuilt = $16::json,
    is_stale = $17,
    updated_at = now()
WHERE org = $1 AND project = $2 AND capability_id = $3

-- name: list-stale
SELECT org, project, capability_id
FROM learning
WHERE is_stale AND rule_version <= $1
UNION
SELECT org, project, capability_id
FROM (
    SELECT org, project, capability_id
    FROM learning
    WHERE rule_version < $1 AND position > base_position
    LIMIT $2
) AS of_older_rules
LIMIT $2

-- name: list-capabilities
SELECT capability_id
FROM learning
WHERE org = $1 AND project = $2 AND run_count > 0 AND ($3::uuid IS NULL OR capability_id > $3)
ORDER BY capability_id
LIMIT $4

-- name: count-capabilities
SELECT count(*)
FROM learning
WHERE org = $1 AND project = $2 AND run_count > 0 AND ($3::uuid IS NULL OR capability_id > $3)
