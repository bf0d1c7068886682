-- name: count-backlog
-- Over all scopes: for whoever operates the service. Messages are published when they are stored;
-- those that are due are left to the sweeper.
SELECT
    (SELECT count(*) FROM workflow WHERE state = 'awaiting_approval') AS approvals,
    (SELECT count(*) FROM outbox WHERE due_at <= now()) AS messages
