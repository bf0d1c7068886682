-- name: meet-capability
INSERT INTO learning (org, project, capability_id, code_hash) VALUES ($1, $2, $3, $4)
ON CONFLICT DO NOTHING

-- name: lock-experience
SELECT run_count, success_count, mean_duration_ms, learning
FROM learning
WHERE org = $1 AND project = $2 AND capability_id = $3
FOR UPDATE

-- name: save-lesson
-- A trace, the experience with it, and in $29 the facts that the handling of a message stated;
-- null: there is more of it to save.
WITH learned AS (
    UPDATE learning
    SET run_count = $23, success_count = $24, mean_duration_ms = $25, learning = $26,
        updated_at = now()
    WHERE org = $1 AND project = $2 AND capability_id = $4
), concluded AS (
    UPDATE inbox
    SET facts = $29
    WHERE message_id = $27 AND consumer = $28 AND $29::json IS NOT NULL
)
INSERT INTO execution_trace (
    org, project, id, capability_id, workflow_id, code_hash, intent_text, executed_at, success,
    duration_ms, result, error, error_message, user_id, executed_path, decisions, task_results,
    priority, parent_trace_id, dry_run, node_id, name
)
VALUES (
    $1, $2, $3, $4, $5, $6, $7, to_timestamp($8::double precision / 1000), $9,
    $10, $11, $12, $13, $14, $15, $16, $17,
    $18, $19, $20, $21, $22
)

-- name: list-traces
SELECT
    id, capability_id, workflow_id, intent_text,
    (extract(epoch FROM executed_at) * 1000)::double precision AS executed_at_ms,
    success, duration_ms, result, error, executed_path, decisions, task_results, priority,
    parent_trace_id, dry_run, node_id, name
FROM execution_trace
WHERE org = $1 AND project = $2
    AND ($3::uuid IS NULL OR capability_id = $3)
    AND ($4::uuid IS NULL OR workflow_id = $4)
ORDER BY $4::uuid IS NOT NULL AND parent_trace_id IS NOT NULL, executed_at DESC, id
LIMIT $5 OFFSET $6

-- name: count-traces
SELECT count(*)
FROM execution_trace
WHERE org = $1 AND project = $2
    AND ($3::uuid IS NULL OR capability_id = $3)
    AND ($4::uuid IS NULL OR workflow_id = $4)
