-- name: accept-workflow
-- The workflow after its first step, the approval that it waits for, if any, and what the bus must
-- be told, in one statement; no row: the key is taken.
WITH accepted AS (
    INSERT INTO workflow (
        org, project, workflow_id, state, analysis, capability_id, approval_id, run, result, error,
        due_at, finished_at, granted, idempotency_key, request_hash, timeout_s, traceparent,
        requested, created_at, call_digest, principal
    )
    VALUES (
        $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19,
        $20, $21
    )
    ON CONFLICT DO NOTHING
    RETURNING org, project, workflow_id, approval_id, traceparent
), asked AS (
    INSERT INTO approval (org, project, workflow_id, approval_id, requested_at, expires_at)
    SELECT org, project, workflow_id, approval_id, $22, $23
    FROM accepted
    WHERE approval_id IS NOT NULL
), told AS (
    INSERT INTO outbox (message_id, org, project, message, content, traceparent, due_at)
    SELECT effect.message_id, org, project, effect.message, effect.content, traceparent,
        now() + $27::interval
    FROM accepted, unnest($24::uuid[], $25::text[], $26::json[]) AS effect(message_id, message, content)
)
SELECT workflow_id
FROM accepted
WHERE bound()

-- name: add-workflows
-- Workflows that the bus accepted; those that have a row stay as they are.
INSERT INTO workflow (
    org, project, workflow_id, state, analysis, capability_id, approval_id, run, result, error,
    due_at, finished_at, granted, idempotency_key, request_hash, timeout_s, traceparent,
    requested, created_at, call_digest, principal
)
SELECT *
FROM unnest(
    $1::text[], $2::text[], $3::uuid[], $4::text[], $5::json[], $6::uuid[], $7::uuid[], $8::json[],
    $9::json[], $10::json[], $11::timestamptz[], $12::timestamptz[], $13::json[], $14::text[],
    $15::text[], $16::double precision[], $17::text[], $18::json[], $19::timestamptz[],
    $20::text[], $21::text[]
)
ON CONFLICT DO NOTHING
RETURNING org, project, workflow_id

-- name: get-workflow
SELECT *
FROM workflow_now
WHERE org = $1 AND project = $2 AND workflow_id = $3

-- name: lock-call
-- One at a time, until the transaction ends, among equal calls.
SELECT pg_advisory_xact_lock(hashtextextended($1 || '.' || $2 || '/' || $3, 0))

-- name: find-joinable
-- The latest workflow of a call that a person was asked about and whose result is not delivered.
SELECT *
FROM workflow_now
WHERE org = $1 AND project = $2 AND call_digest = $3 AND approval_id IS NOT NULL
    AND delivered_at IS NULL AND (state = 'awaiting_approval' OR outcome = 'approved')
ORDER BY created_at DESC
LIMIT 1

-- name: deliver-workflow
UPDATE workflow
SET delivered_at = now()
WHERE org = $1 AND project = $2 AND workflow_id = $3 AND delivered_at IS NULL

-- name: get-workflow-and-facts
-- The workflow, and what the handling of a message stated if it was handled.
SELECT workflow_now.*, inbox.facts
FROM workflow_now
LEFT JOIN inbox ON inbox.message_id = $4 AND inbox.consumer = $5
WHERE workflow_now.org = $1 AND workflow_now.project = $2 AND workflow_id = $3

-- name: step-once
-- A step and the memory of its message, in one statement; no row: somebody else took a step since
-- revision $14, or handled the message.
WITH held AS (
    SELECT
    FROM workflow
    WHERE org = $1 AND project = $2 AND workflow_id = $3 AND revision = $14
    FOR UPDATE
), noted AS (
    INSERT INTO inbox (message_id, consumer, facts)
    SELECT $15, $16, $17
    FROM held
    ON CONFLICT DO NOTHING
    RETURNING message_id
), asked AS (
    INSERT INTO approval (org, project, workflow_id, approval_id, requested_at, expires_at, parked)
    SELECT $1, $2, $3, $7, $18, $19, $20
    FROM noted
    WHERE $18::timestamptz IS NOT NULL
)
UPDATE workflow
SET
    state = $4,
    analysis = coalesce($5, analysis),
    capability_id = $6,
    approval_id = $7,
    run = $8,
    result = $9,
    error = $10,
    due_at = $11,
    finished_at = $12,
    granted = coalesce($13, granted),
    revision = revision + 1
FROM noted
WHERE org = $1 AND project = $2 AND workflow_id = $3 AND bound()
RETURNING revision

-- name: get-workflows
SELECT workflow_now.*
FROM unnest($1::text[], $2::text[], $3::uuid[]) AS wanted(org, project, workflow_id)
JOIN workflow_now USING (org, project, workflow_id)

-- name: end-workflows
-- The ends of runs, in one statement; rows that took another step since their revision stay. Rows
-- are locked in one order.
WITH ended AS (
    SELECT *
    FROM unnest(
        $1::text[], $2::text[], $3::uuid[], $4::integer[], $5::text[], $6::json[], $7::json[],
        $8::json[], $9::timestamptz[]
    ) AS ended(org, project, workflow_id, revision, state, run, result, error, finished_at)
), held AS (
    SELECT workflow.org, workflow.project, workflow.workflow_id
    FROM workflow
    JOIN ended USING (org, project, workflow_id, revision)
    ORDER BY workflow.org, workflow.project, workflow.workflow_id
    FOR UPDATE OF workflow
)
UPDATE workflow
SET
    state = ended.state,
    run = ended.run,
    result = ended.result,
    error = ended.error,
    due_at = NULL,
    finished_at = ended.finished_at,
    revision = workflow.revision + 1
FROM ended
JOIN held USING (org, project, workflow_id)
WHERE workflow.org = ended.org AND workflow.project = ended.project
    AND workflow.workflow_id = ended.workflow_id
RETURNING workflow.org, workflow.project, workflow.workflow_id

-- name: hold-workflow
SELECT *
FROM workflow
WHERE org = $1 AND project = $2 AND workflow_id = $3
FOR UPDATE

-- name: save-workflow
-- An analysis comes once and never goes: null leaves it as it is.
UPDATE workflow
SET
    state = $4,
    analysis = coalesce($5, analysis),
    capability_id = $6,
    approval_id = $7,
    run = $8,
    result = $9,
    error = $10,
    due_at = $11,
    finished_at = $12,
    granted = coalesce($13, granted),
    revision = revision + 1
WHERE org = $1 AND project = $2 AND workflow_id = $3

-- name: erase-workflow
-- What is left says whose workflow it was, when and how it ended, and who decided what about it; the
-- key stays, so that a request with it does not run again.
WITH calls AS (
    DELETE FROM tool_call
    WHERE org = $1 AND project = $2 AND workflow_id = $3
), cached AS (
    DELETE FROM cached_result
    WHERE org = $1 AND project = $2 AND workflow_id = $3
), speculated AS (
    DELETE FROM speculation
    WHERE org = $1 AND project = $2 AND workflow_id = $3
), asked AS (
    UPDATE approval
    SET parked = NULL, reason = NULL
    WHERE org = $1 AND project = $2 AND workflow_id = $3
), stated AS (
    UPDATE inbox
    SET facts = '[]'
    WHERE message_id = ANY($6::uuid[])
)
UPDATE workflow
SET
    requested = $4,
    request_hash = '',
    traceparent = NULL,
    call_digest = NULL,
    analysis = NULL,
    capability_id = NULL,
    granted = NULL,
    run = NULL,
    result = NULL,
    error = NULL,
    deleted_at = $5,
    revision = revision + 1
WHERE org = $1 AND project = $2 AND workflow_id = $3

-- name: get-approval
SELECT
    requested_at AS asked_at, expires_at, outcome, decided_by, decided_at, reason, parked,
    shown_digest, shown_whole, decided_through
FROM approval
WHERE org = $1 AND project = $2 AND approval_id = $3

-- name: settle-approval
UPDATE approval
SET
    outcome = $4, decided_by = $5, decided_at = $6, reason = $7, shown_digest = $8,
    shown_whole = $9, decided_through = $10
WHERE org = $1 AND project = $2 AND approval_id = $3

-- name: list-workflows
SELECT
    workflow_id, state, requested, capability_id, error, created_at, finished_at, deleted_at
FROM workflow
WHERE org = $1 AND project = $2
    AND created_at <= coalesce($5::timestamptz, 'infinity')
    AND ($5 IS NULL OR created_at < $5 OR workflow_id > $6::uuid)
ORDER BY created_at DESC, workflow_id
LIMIT $3 OFFSET $4

-- name: count-workflows
SELECT count(*)
FROM workflow
WHERE org = $1 AND project = $2

-- name: list-waiting
SELECT *
FROM workflow_now
WHERE org = $1 AND project = $2 AND state = 'awaiting_approval'
    AND ($5::timestamptz IS NULL OR (due_at, workflow_id) > ($5, $6::uuid))
ORDER BY due_at, workflow_id
LIMIT $3 OFFSET $4

-- name: count-waiting
SELECT count(*)
FROM workflow
WHERE org = $1 AND project = $2 AND state = 'awaiting_approval'

-- name: list-due
SELECT workflow_id
FROM workflow
WHERE org = $1 AND project = $2 AND due_at <= $3
ORDER BY due_at
LIMIT $4

-- name: forget-workflows
-- Over all scopes: the clock works for the gateway, not for a caller.
DELETE FROM workflow
USING (
    SELECT org, project, workflow_id
    FROM workflow
    WHERE finished_at < $1 AND approval_id IS NULL AND NOT EXISTS (
        SELECT 1
        FROM cached_result
        WHERE cached_result.org = workflow.org AND cached_result.project = workflow.project
            AND cached_result.workflow_id = workflow.workflow_id
    )
    ORDER BY finished_at
    LIMIT $2
    FOR UPDATE SKIP LOCKED
) AS old
WHERE workflow.org = old.org AND workflow.project = old.project
    AND workflow.workflow_id = old.workflow_id
RETURNING workflow.workflow_id
