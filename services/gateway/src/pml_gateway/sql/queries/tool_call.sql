-- name: begin-call
-- An entry with the fingerprint $11 is replaced: its call only read, and is no part of the run.
INSERT INTO tool_call (
    org, project, idempotency_key, workflow_id, node_id, occurrence, tool,
    fingerprint, owner, deadline
)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10
WHERE bound()
ON CONFLICT (org, project, idempotency_key) DO UPDATE
SET
    tool = excluded.tool, fingerprint = excluded.fingerprint, owner = excluded.owner,
    begun_at = now(), deadline = excluded.deadline, outcome = NULL, ended_at = NULL
WHERE tool_call.fingerprint = $11
RETURNING idempotency_key

-- name: get-call
SELECT tool, fingerprint, owner, deadline, outcome
FROM tool_call
WHERE org = $1 AND project = $2 AND idempotency_key = $3

-- name: get-results
SELECT idempotency_key, outcome -> 'result' AS result
FROM tool_call
WHERE org = $1 AND project = $2 AND idempotency_key = ANY($3) AND outcome ->> 'status' = 'ok'

-- name: take-over-call
UPDATE tool_call
SET owner = $5, deadline = $6
WHERE org = $1 AND project = $2 AND idempotency_key = $3 AND owner = $4 AND outcome IS NULL
RETURNING idempotency_key

-- name: settle-call
-- Keeps an outcome once, of a call that was begun here or of one that needed no beginning. What may
-- be called again ($12) does not wait for the disk: a server that falls loses 0.6 s of it. An entry
-- with the fingerprint $13 is replaced; one of any other call under the same key stays.
WITH durability AS (
    SELECT set_config(
        'synchronous_commit',
        CASE WHEN $12 THEN 'off' ELSE current_setting('synchronous_commit') END,
        true
    )
)
INSERT INTO tool_call (
    org, project, idempotency_key, workflow_id, node_id, occurrence, tool,
    fingerprint, owner, deadline, outcome, ended_at
)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, now()
FROM durability
WHERE bound()
ON CONFLICT (org, project, idempotency_key) DO UPDATE
SET
    tool = excluded.tool, fingerprint = excluded.fingerprint, owner = excluded.owner,
    deadline = excluded.deadline, outcome = excluded.outcome, ended_at = excluded.ended_at
WHERE
    (tool_call.outcome IS NULL AND tool_call.fingerprint = excluded.fingerprint)
    OR tool_call.fingerprint = $13
RETURNING idempotency_key

-- name: add-calls
-- Calls with their outcomes, which needed no beginning; those with an entry stay as they are.
INSERT INTO tool_call (
    org, project, idempotency_key, workflow_id, node_id, occurrence, tool,
    fingerprint, owner, deadline, outcome, ended_at
)
SELECT added.*, now()
FROM unnest(
    $1::text[], $2::text[], $3::uuid[], $4::uuid[], $5::text[], $6::integer[], $7::text[],
    $8::text[], $9::uuid[], $10::timestamptz[], $11::json[]
) AS added
ON CONFLICT DO NOTHING

-- name: forget-calls
-- Over all scopes: the clock works for the gateway, not for a caller.
DELETE FROM tool_call
WHERE deadline < $1
