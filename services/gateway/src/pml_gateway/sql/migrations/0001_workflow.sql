-- json, not jsonb, wherever a payload is kept: only json can hold \u0000. For the same reason
-- nothing is picked out of a payload in SQL: the operators fail on it.

-- One execution. Its request and its analysis are kept as they crossed the bus, its run without
-- result and error, which have columns of their own; capability_id is the analysis's, to find by;
-- revision counts the steps it took.
CREATE TABLE workflow (
    org text NOT NULL,
    project text NOT NULL,
    workflow_id uuid NOT NULL,
    idempotency_key text NOT NULL,
    request_hash text NOT NULL,
    timeout_s double precision NOT NULL,
    traceparent text,
    state text NOT NULL CHECK (
        state IN ('requested', 'awaiting_approval', 'running', 'succeeded', 'failed')
    ),
    requested json NOT NULL,
    analysis json,
    capability_id uuid,
    approval_id uuid,
    run json,
    result json,
    error json,
    created_at timestamptz NOT NULL,
    due_at timestamptz,
    finished_at timestamptz,
    revision integer NOT NULL DEFAULT 0,
    PRIMARY KEY (org, project, workflow_id),
    UNIQUE (org, project, idempotency_key)
);

CREATE INDEX workflow_newest ON workflow (org, project, created_at DESC);
CREATE INDEX workflow_due ON workflow (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX workflow_waiting ON workflow (org, project, due_at)
    WHERE state = 'awaiting_approval';

-- What a person was asked, and the answer; kept as the record of who allowed what.
CREATE TABLE approval (
    org text NOT NULL,
    project text NOT NULL,
    approval_id uuid NOT NULL,
    workflow_id uuid NOT NULL,
    requested_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    outcome text CHECK (outcome IN ('approved', 'denied', 'expired')),
    decided_by text,
    decided_at timestamptz,
    reason text,
    PRIMARY KEY (org, project, approval_id),
    FOREIGN KEY (org, project, workflow_id) REFERENCES workflow (org, project, workflow_id)
);

-- A workflow with the approval that it waits for, or waited for last.
CREATE VIEW workflow_now AS
SELECT
    workflow.*,
    approval.requested_at AS asked_at,
    approval.expires_at,
    approval.outcome,
    approval.decided_by,
    approval.decided_at,
    approval.reason
FROM workflow
LEFT JOIN approval USING (org, project, approval_id);

-- What a stored change must still tell the bus; a row goes once it was told.
CREATE TABLE outbox (
    message_id uuid PRIMARY KEY,
    org text NOT NULL,
    project text NOT NULL,
    message text NOT NULL,
    content json NOT NULL,
    traceparent text,
    due_at timestamptz NOT NULL
);

CREATE INDEX outbox_due ON outbox (due_at);

-- Every tool call: begun here before it is made, its outcome here before it is told.
CREATE TABLE tool_call (
    org text NOT NULL,
    project text NOT NULL,
    idempotency_key uuid NOT NULL,
    workflow_id uuid NOT NULL,
    node_id text NOT NULL,
    occurrence integer NOT NULL,
    tool text NOT NULL,
    fingerprint text NOT NULL,
    owner uuid NOT NULL,
    begun_at timestamptz NOT NULL DEFAULT now(),
    deadline timestamptz NOT NULL,
    outcome json,
    ended_at timestamptz,
    PRIMARY KEY (org, project, idempotency_key)
);

CREATE INDEX tool_call_deadline ON tool_call (deadline);
