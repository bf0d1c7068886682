-- name: make-month
SELECT make_trace_month(to_timestamp($1))

-- name: list-unknown-months
-- Of which Postgres has no statistics yet: it takes a scope's rows for few, and any index that begins
-- with the scope for as good as the right one.
SELECT relname::text AS name
FROM pg_stat_user_tables
JOIN pg_inherits ON inhrelid = relid
WHERE inhparent = 'execution_trace'::regclass
    AND last_analyze IS NULL AND last_autoanalyze IS NULL AND n_live_tup >= $1

-- name: analyze-month
SELECT analyze_trace_month($1)

-- name: list-scopes
SELECT DISTINCT org, project FROM learning ORDER BY org, project

-- name: list-months
-- Months that end by then, the oldest first.
SELECT name, begins AT TIME ZONE 'UTC' AS begins, ends AT TIME ZONE 'UTC' AS ends
FROM (
    SELECT
        child.relname::text AS name,
        to_date(right(child.relname, 7), 'YYYY_MM')::timestamp AS begins,
        to_date(right(child.relname, 7), 'YYYY_MM') + interval '1 month' AS ends
    FROM pg_inherits
    JOIN pg_class AS child ON child.oid = inhrelid
    WHERE inhparent = 'execution_trace'::regclass
) AS months
WHERE ends AT TIME ZONE 'UTC' <= $1
ORDER BY ends

-- name: has-young-traces
-- In a month, of scopes that keep theirs since a time of their own.
SELECT EXISTS (
    SELECT
    FROM unnest($1::text[], $2::text[], $3::timestamptz[]) AS kept (org, project, since)
    JOIN execution_trace AS trace USING (org, project)
    WHERE trace.executed_at >= kept.since AND trace.executed_at >= $4 AND trace.executed_at < $5
)

-- name: drop-month
SELECT drop_trace_month($1)

-- name: hurry
-- Who waits for a lock on a table holds back all who come later.
SET LOCAL lock_timeout = '500ms'

-- name: hold-months
LOCK TABLE ONLY execution_trace IN ACCESS EXCLUSIVE MODE

-- name: list-old
-- The workflows of the oldest traces: a workflow's traces go together, since they refer to each
-- other.
SELECT DISTINCT workflow_id
FROM (
    SELECT workflow_id
    FROM execution_trace
    WHERE org = $1 AND project = $2 AND executed_at < $3
    ORDER BY executed_at
    LIMIT $4
) AS found

-- name: delete-traces
DELETE FROM execution_trace
WHERE org = $1 AND project = $2 AND workflow_id = ANY ($3::uuid[])

-- name: unfolded-of-workflows
-- The last position of each capability's traces that is not in its base.
SELECT trace.org, trace.project, trace.capability_id, max(trace.position) AS position
FROM execution_trace AS trace
JOIN learning USING (org, project, capability_id)
WHERE trace.org = $1 AND trace.project = $2 AND trace.workflow_id = ANY ($3::uuid[])
    AND trace.position > learning.base_position
GROUP BY trace.org, trace.project, trace.capability_id

-- name: unfolded-of-month
SELECT trace.org, trace.project, trace.capability_id, max(trace.position) AS position
FROM execution_trace AS trace
JOIN learning USING (org, project, capability_id)
WHERE trace.executed_at >= $1 AND trace.executed_at < $2
    AND trace.position > learning.base_position
GROUP BY trace.org, trace.project, trace.capability_id

-- name: list-of-principal
SELECT DISTINCT workflow_id
FROM execution_trace
WHERE org = $1 AND project = $2 AND user_id = $3 AND executed_at < $4
LIMIT $5

-- name: drop-opinions
DELETE FROM feedback
WHERE org = $1 AND project = $2 AND principal = $3 AND given_at < $4
