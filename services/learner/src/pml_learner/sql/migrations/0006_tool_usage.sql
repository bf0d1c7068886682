-- Calls of tools by programs, and of named capabilities (server_id pml-capabilities) by name.
CREATE TABLE tool_usage (
    org text NOT NULL,
    project text NOT NULL,
    server_id text NOT NULL,
    tool_id text NOT NULL,
    calls bigint NOT NULL,
    succeeded bigint NOT NULL,
    duration_ms double precision NOT NULL,
    last_called_at timestamptz NOT NULL,
    PRIMARY KEY (org, project, server_id, tool_id)
);

COMMENT ON COLUMN tool_usage.duration_ms IS 'of all calls together';

-- Opinions of runs: one of each principal of each workflow.
CREATE TABLE feedback (
    org text NOT NULL,
    project text NOT NULL,
    workflow_id uuid NOT NULL,
    principal text NOT NULL,
    capability_id uuid NOT NULL,
    useful boolean NOT NULL,
    comment text NOT NULL DEFAULT '',
    given_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (org, project, workflow_id, principal)
);

CREATE INDEX idx_feedback_capability ON feedback (org, project, capability_id);

ALTER TABLE execution_trace ADD COLUMN discovery_id uuid;

COMMENT ON COLUMN execution_trace.discovery_id IS 'the discovery that the caller followed';

CREATE INDEX idx_exec_trace_discovery ON execution_trace (org, project, discovery_id)
    WHERE discovery_id IS NOT NULL;
