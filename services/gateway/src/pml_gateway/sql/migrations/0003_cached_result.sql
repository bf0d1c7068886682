-- Which workflow's result answers a call of a capability again: one row for each revision of its
-- cache settings, code and arguments (the digest). expires_at null: for as long as it is asked for.
CREATE TABLE cached_result (
    org text NOT NULL,
    project text NOT NULL,
    capability_id uuid NOT NULL,
    revision integer NOT NULL,
    digest text NOT NULL,
    workflow_id uuid NOT NULL,
    expires_at timestamptz,
    PRIMARY KEY (org, project, capability_id, revision, digest),
    FOREIGN KEY (org, project, workflow_id)
        REFERENCES workflow (org, project, workflow_id) ON DELETE CASCADE
);

CREATE INDEX cached_result_workflow ON cached_result (org, project, workflow_id);
CREATE INDEX cached_result_expires ON cached_result (expires_at) WHERE expires_at IS NOT NULL;
