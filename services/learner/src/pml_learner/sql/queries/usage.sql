-- name: count-calls
-- Rows are locked in one order, so that two batches cannot deadlock.
INSERT INTO tool_usage (
    org, project, server_id, tool_id, calls, succeeded, duration_ms, last_called_at
)
SELECT
    org, project, server_id, tool_id, calls, succeeded, duration_ms, to_timestamp(last_ms / 1000)
FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[],
    $7::double precision[], $8::double precision[]
) AS used (org, project, server_id, tool_id, calls, succeeded, duration_ms, last_ms)
ORDER BY org, project, server_id, tool_id
ON CONFLICT (org, project, server_id, tool_id) DO UPDATE
SET calls = tool_usage.calls + excluded.calls,
    succeeded = tool_usage.succeeded + excluded.succeeded,
    duration_ms = tool_usage.duration_ms + excluded.duration_ms,
    last_called_at = greatest(tool_usage.last_called_at, excluded.last_called_at)

-- name: list-tool-usage
SELECT server_id, tool_id, calls, succeeded, duration_ms / calls AS mean_duration_ms, last_called_at
FROM tool_usage
WHERE org = $1 AND project = $2 AND ($3::text IS NULL OR server_id = $3)
    AND (
        $6::bigint IS NULL
        OR (-calls, tool_id COLLATE "C", server_id COLLATE "C") > ($6, $7::text, $8::text)
    )
ORDER BY calls DESC, tool_id COLLATE "C", server_id COLLATE "C"
LIMIT $4 OFFSET $5

-- name: sum-tool-usage
SELECT count(*) AS total, coalesce(sum(calls), 0)::bigint AS calls
FROM tool_usage
WHERE org = $1 AND project = $2 AND ($3::text IS NULL OR server_id = $3)

-- name: capability-of-workflow
-- Its trace is held, so that a deletion of the workflow sees the comment that is about to be stored.
SELECT capability_id
FROM execution_trace
WHERE org = $1 AND project = $2 AND workflow_id = $3 AND parent_trace_id IS NULL AND NOT dry_run
FOR KEY SHARE

-- name: give-feedback
INSERT INTO feedback (org, project, workflow_id, principal, capability_id, useful, comment)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (org, project, workflow_id, principal) DO UPDATE
SET useful = excluded.useful, comment = excluded.comment, given_at = now()

-- name: list-feedback
SELECT
    capability_id,
    count(*) FILTER (WHERE useful) AS useful,
    count(*) FILTER (WHERE NOT useful) AS not_useful
FROM feedback
WHERE org = $1 AND project = $2 AND ($3::uuid IS NULL OR capability_id = $3)
GROUP BY capability_id
HAVING $6::bigint IS NULL OR (-count(*), capability_id) > ($6, $7::uuid)
ORDER BY count(*) DESC, capability_id
LIMIT $4 OFFSET $5

-- name: list-opinions
-- The last ones of each capability, in the order in which they were given.
SELECT
    asked.capability_id, said.principal, said.useful,
    floor(extract(epoch FROM said.given_at) / 3600)::integer AS hour
FROM unnest($3::uuid[]) AS asked (capability_id)
CROSS JOIN LATERAL (
    SELECT principal, useful, given_at, workflow_id
    FROM feedback
    WHERE org = $1 AND project = $2 AND feedback.capability_id = asked.capability_id
    ORDER BY given_at DESC, workflow_id, principal
    LIMIT $4
) AS said
ORDER BY said.given_at, said.workflow_id DESC, said.principal DESC

-- name: count-feedback
SELECT count(DISTINCT capability_id) FROM feedback WHERE org = $1 AND project = $2

-- name: opinion-weights
-- The first $4 opinions of a principal in an hour weigh.
SELECT
    count(*) FILTER (WHERE useful AND weighs)::double precision AS useful,
    count(*) FILTER (WHERE NOT useful AND weighs)::double precision AS not_useful,
    (extract(epoch FROM max(given_at)) * 1000)::double precision AS judged_at
FROM (
    SELECT
        own.useful, own.given_at,
        (
            SELECT count(*)
            FROM feedback earlier
            WHERE earlier.org = $1 AND earlier.project = $2
                AND earlier.principal = own.principal
                AND earlier.given_at >= date_trunc('hour', own.given_at)
                AND (earlier.given_at, earlier.workflow_id) < (own.given_at, own.workflow_id)
        ) < $4::integer AS weighs
    FROM feedback own
    WHERE own.org = $1 AND own.project = $2 AND own.workflow_id = $3
) AS opinion
HAVING count(*) > 0
