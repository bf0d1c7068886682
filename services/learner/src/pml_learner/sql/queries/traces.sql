-- name: meet-capabilities
INSERT INTO learning (org, project, capability_id, code_hash)
SELECT met.org, met.project, met.capability_id, met.code_hash
FROM unnest($1::text[], $2::text[], $3::uuid[], $4::text[])
    AS met (org, project, capability_id, code_hash)
ON CONFLICT DO NOTHING

-- name: lock-experiences
SELECT
    learning.org, learning.project, learning.capability_id, run_count, success_count,
    success_streak, mean_duration_ms, position, state, rule_version, rebuilds, base_position,
    CASE WHEN run_count <> position THEN learning END AS learning
FROM learning
JOIN unnest($1::text[], $2::text[], $3::uuid[]) AS asked (org, project, capability_id)
    USING (org, project, capability_id)
ORDER BY learning.org, learning.project, learning.capability_id
FOR UPDATE OF learning

-- name: save-lessons
-- Traces, the experiences with them, and the messages to publish, in one statement. Arrays of arrays
-- do not exist, so a path is passed as JSON. Traces of workflows whose data was deleted are left out:
-- of learned ones, a batch knew before.
WITH learned AS (
    UPDATE learning
    SET run_count = learned.run_count,
        success_count = learned.success_count,
        success_streak = learned.success_streak,
        mean_duration_ms = learned.mean_duration_ms,
        learning = learned.learning::json,
        position = learned.run_count,
        state = learned.state::json,
        rule_version = learned.rule_version,
        base_position = learned.base_position,
        base = coalesce(learned.base::json, learning.base),
        is_stale = learned.is_stale,
        updated_at = now()
    FROM unnest(
        $26::text[], $27::text[], $28::uuid[], $29::integer[], $30::integer[], $31::integer[],
        $32::double precision[], $33::text[], $34::text[], $35::integer[], $36::integer[],
        $37::text[], $38::boolean[]
    ) AS learned (
        org, project, capability_id, run_count, success_count, success_streak, mean_duration_ms,
        learning, state, rule_version, base_position, base, is_stale
    )
    WHERE learning.org = learned.org AND learning.project = learned.project
        AND learning.capability_id = learned.capability_id
), concluded AS (
    UPDATE inbox
    SET facts = concluded.facts::json
    FROM unnest($39::uuid[], $40::text[]) AS concluded (message_id, facts)
    WHERE inbox.message_id = concluded.message_id AND inbox.consumer = $41
)
INSERT INTO execution_trace (
    org, project, id, capability_id, workflow_id, code_hash, intent_text, executed_at, success,
    duration_ms, result, error, error_message, user_id, executed_path, decisions, task_results,
    priority, parent_trace_id, dry_run, node_id, name, discovery_id, fault, position,
    large_results
)
SELECT
    org, project, id, capability_id, workflow_id, code_hash, intent_text,
    to_timestamp(executed_at_ms / 1000), success, duration_ms, result::json, error::json,
    error_message, user_id, ARRAY(SELECT json_array_elements_text(executed_path::json)),
    decisions::json, task_results::json, priority, parent_trace_id, dry_run, node_id, name,
    discovery_id, fault, position, large_results::json
FROM unnest(
    $1::text[], $2::text[], $3::uuid[], $4::uuid[], $5::uuid[], $6::text[], $7::text[],
    $8::double precision[], $9::boolean[], $10::double precision[], $11::text[], $12::text[],
    $13::text[], $14::text[], $15::text[], $16::text[], $17::text[], $18::double precision[],
    $19::uuid[], $20::boolean[], $21::text[], $22::text[], $23::uuid[], $24::text[],
    $25::integer[], $42::text[]
) AS trace (
    org, project, id, capability_id, workflow_id, code_hash, intent_text, executed_at_ms, success,
    duration_ms, result, error, error_message, user_id, executed_path, decisions, task_results,
    priority, parent_trace_id, dry_run, node_id, name, discovery_id, fault, position,
    large_results
)
WHERE NOT EXISTS (
    SELECT
    FROM deleted_workflow
    WHERE deleted_workflow.org = trace.org AND deleted_workflow.project = trace.project
        AND deleted_workflow.workflow_id = trace.workflow_id
)

-- name: hold-deletions
-- Before a batch asks which workflows were deleted, until it ends.
LOCK TABLE execution_trace IN ROW EXCLUSIVE MODE

-- name: list-deleted
SELECT deleted_workflow.org, deleted_workflow.project, deleted_workflow.workflow_id
FROM deleted_workflow
JOIN unnest($1::text[], $2::text[], $3::uuid[]) AS asked (org, project, workflow_id)
    USING (org, project, workflow_id)

-- name: await-traces
-- Waits for batches that are adding traces and holds back those to come: they see the note.
LOCK TABLE execution_trace IN SHARE ROW EXCLUSIVE MODE

-- name: note-deletion
INSERT INTO deleted_workflow (org, project, workflow_id)
VALUES ($1, $2, $3)
ON CONFLICT DO NOTHING

-- name: erase-traces
DELETE FROM execution_trace
WHERE org = $1 AND project = $2 AND workflow_id = $3

-- name: erase-comments
UPDATE feedback
SET comment = ''
WHERE org = $1 AND project = $2 AND workflow_id = $3
