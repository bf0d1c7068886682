-- What a capability's runs taught; one row per capability, made by its first run.
CREATE TABLE learning (
    org text NOT NULL,
    project text NOT NULL,
    capability_id uuid NOT NULL,
    code_hash text NOT NULL,
    run_count integer NOT NULL DEFAULT 0,
    success_count integer NOT NULL DEFAULT 0,
    mean_duration_ms double precision NOT NULL DEFAULT 0,
    -- json, not jsonb, wherever a payload is kept: only json can hold \u0000.
    learning json NOT NULL DEFAULT '{}',
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (org, project, capability_id)
);

CREATE TABLE execution_trace (
    org text NOT NULL,
    project text NOT NULL,
    id uuid NOT NULL,
    capability_id uuid NOT NULL,
    workflow_id uuid NOT NULL,
    code_hash text NOT NULL,
    intent_text text,
    executed_at timestamptz NOT NULL,
    success boolean NOT NULL,
    duration_ms double precision NOT NULL,
    result json NOT NULL,
    error json,
    error_message text,
    user_id text NOT NULL,
    created_by text NOT NULL DEFAULT 'learner',
    updated_by text,
    executed_path text[] NOT NULL,
    decisions json NOT NULL,
    task_results json NOT NULL,
    priority double precision NOT NULL DEFAULT 0.5 CHECK (priority BETWEEN 0 AND 1),
    parent_trace_id uuid,
    PRIMARY KEY (org, project, id),
    FOREIGN KEY (org, project, capability_id)
        REFERENCES learning (org, project, capability_id),
    FOREIGN KEY (org, project, parent_trace_id)
        REFERENCES execution_trace (org, project, id)
);

COMMENT ON COLUMN execution_trace.user_id IS 'the principal who ran it';
COMMENT ON COLUMN execution_trace.created_by IS 'what wrote the row';
COMMENT ON COLUMN execution_trace.updated_by IS 'what changed the row last, if anything did';

CREATE INDEX idx_exec_trace_capability
    ON execution_trace (org, project, capability_id, executed_at DESC);
CREATE INDEX idx_exec_trace_timestamp ON execution_trace (org, project, executed_at DESC);
CREATE INDEX idx_exec_trace_workflow ON execution_trace (org, project, workflow_id);
CREATE INDEX idx_exec_trace_user ON execution_trace (org, project, user_id);
CREATE INDEX idx_exec_trace_path ON execution_trace USING gin (executed_path);
CREATE INDEX idx_exec_trace_priority
    ON execution_trace (org, project, capability_id, priority DESC);
