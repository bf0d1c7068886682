-- Workflows whose data was deleted: traces of them that come later are not kept.
CREATE TABLE deleted_workflow (
    org text NOT NULL,
    project text NOT NULL,
    workflow_id uuid NOT NULL,
    deleted_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (org, project, workflow_id)
);
