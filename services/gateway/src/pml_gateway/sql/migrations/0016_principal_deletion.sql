-- The record of who had the data of which principal deleted.
CREATE TABLE principal_deletion (
    org text NOT NULL,
    project text NOT NULL,
    deletion_id uuid NOT NULL,
    principal text NOT NULL,
    deleted_by text NOT NULL,
    deleted_at timestamptz NOT NULL,
    PRIMARY KEY (org, project, deletion_id)
);

CREATE INDEX principal_deletion_newest ON principal_deletion (org, project, deleted_at DESC);
