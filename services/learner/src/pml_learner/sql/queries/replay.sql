-- name: next-capability
SELECT org, project, capability_id, learning
FROM learning
WHERE run_count > 0 AND (org, project, capability_id) > ($1, $2, $3)
ORDER BY org, project, capability_id
LIMIT 1

-- name: list-past-runs
SELECT id, executed_at, executed_path, success, duration_ms, priority
FROM execution_trace
WHERE org = $1 AND project = $2 AND capability_id = $3
    AND position IS NOT NULL AND coalesce(fault, 'capability') = 'capability'
ORDER BY executed_at DESC
LIMIT $4

-- name: refresh-priorities
UPDATE execution_trace
SET priority = fresh.priority, updated_by = 'replay'
FROM unnest($3::uuid[], $4::timestamptz[], $5::double precision[])
    AS fresh (id, executed_at, priority)
WHERE execution_trace.org = $1 AND execution_trace.project = $2
    AND execution_trace.id = fresh.id AND execution_trace.executed_at = fresh.executed_at
    AND execution_trace.priority IS DISTINCT FROM fresh.priority
