-- name: put-outgoing
INSERT INTO outbox (message_id, org, project, message, content, traceparent, due_at)
VALUES ($1, $2, $3, $4, $5, $6, now() + $7::interval)
ON CONFLICT (message_id) DO UPDATE
SET message = excluded.message, content = excluded.content, due_at = excluded.due_at,
    set_aside_because = NULL

-- name: claim-outgoing
-- Over all scopes. Whoever claims a message has until due_at to publish and drop it.
UPDATE outbox
SET due_at = now() + $2::interval
WHERE message_id IN (
    SELECT message_id
    FROM outbox
    WHERE due_at <= now()
    ORDER BY due_at
    LIMIT $1
    FOR UPDATE SKIP LOCKED
)
RETURNING message_id, message, content, traceparent

-- name: set-outgoing-aside
UPDATE outbox
SET due_at = 'infinity', set_aside_because = $2
WHERE message_id = $1

-- name: drop-outgoing
DELETE FROM outbox
WHERE message_id = ANY($1::uuid [])
