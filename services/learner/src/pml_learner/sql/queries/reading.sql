-- name: plan-each
-- The plan depends on which of the filters are given.
SET LOCAL plan_cache_mode = force_custom_plan

-- name: list-traces
SELECT
    id, capability_id, workflow_id, intent_text,
    (extract(epoch FROM executed_at) * 1000)::double precision AS executed_at_ms,
    success, duration_ms, result, error, executed_path, decisions, task_results, priority,
    parent_trace_id, dry_run, node_id, name, discovery_id, large_results, fault, position
FROM execution_trace
WHERE org = $1 AND project = $2
    AND ($3::uuid IS NULL OR capability_id = $3)
    AND ($4::uuid IS NULL OR workflow_id = $4)
    AND ($5::text IS NULL OR (md5(intent_text) = md5($5) AND intent_text = $5))
    AND (
        $8::boolean IS NULL
        OR (
            (
                $4::uuid IS NOT NULL AND parent_trace_id IS NOT NULL,
                -(extract(epoch FROM executed_at) * 1000)::double precision,
                id
            ) > ($8, $9::double precision, $10::uuid)
            -- The same without fractions of a millisecond, for the index.
            AND ($4::uuid IS NOT NULL OR executed_at <= to_timestamp((1 - $9) / 1000))
        )
    )
ORDER BY $4::uuid IS NOT NULL AND parent_trace_id IS NOT NULL, executed_at DESC, id
LIMIT $6 OFFSET $7

-- name: list-traces-by-priority
SELECT
    id, capability_id, workflow_id, intent_text,
    (extract(epoch FROM executed_at) * 1000)::double precision AS executed_at_ms,
    success, duration_ms, result, error, executed_path, decisions, task_results, priority,
    parent_trace_id, dry_run, node_id, name, discovery_id, large_results, fault, position
FROM execution_trace
WHERE org = $1 AND project = $2
    AND ($3::uuid IS NULL OR capability_id = $3)
    AND ($4::uuid IS NULL OR workflow_id = $4)
    AND ($5::text IS NULL OR (md5(intent_text) = md5($5) AND intent_text = $5))
    AND (
        $8::double precision IS NULL
        OR (
            (-priority, -(extract(epoch FROM executed_at) * 1000)::double precision, id)
                > ($8, $9::double precision, $10::uuid)
            AND priority <= -$8
        )
    )
ORDER BY priority DESC, executed_at DESC, id
LIMIT $6 OFFSET $7

-- name: count-traces
SELECT count(*)
FROM (
    SELECT
    FROM execution_trace
    WHERE org = $1 AND project = $2
        AND ($3::uuid IS NULL OR capability_id = $3)
        AND ($4::uuid IS NULL OR workflow_id = $4)
        AND ($5::text IS NULL OR (md5(intent_text) = md5($5) AND intent_text = $5))
    LIMIT $6
) AS counted

-- name: find-trace
SELECT
    id, capability_id, workflow_id, intent_text,
    (extract(epoch FROM executed_at) * 1000)::double precision AS executed_at_ms,
    success, duration_ms, result, error, executed_path, decisions, task_results, priority,
    parent_trace_id, dry_run, node_id, name, discovery_id, large_results, fault, position
FROM execution_trace
-- Not `=`: no index that begins with the scope may serve, in a month without statistics.
WHERE org IS NOT DISTINCT FROM $1 AND project IS NOT DISTINCT FROM $2 AND id = $3

-- name: find-stored
-- A primary key holds within its month alone. One look-up for each id, however few rows there were
-- when the plan was made.
SELECT asked.id
FROM unnest($1::text[], $2::text[], $3::uuid[]) AS asked (org, project, id)
CROSS JOIN LATERAL (
    SELECT
    FROM execution_trace AS stored
    WHERE stored.id = asked.id
        AND stored.org IS NOT DISTINCT FROM asked.org
        AND stored.project IS NOT DISTINCT FROM asked.project
    LIMIT 1
) AS stored
LIMIT 1
