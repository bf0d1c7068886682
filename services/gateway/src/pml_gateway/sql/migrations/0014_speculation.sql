-- Runs of guesses, by which the threshold of speculation is computed; what became of one is in its
-- workflow, which may be stored later than this. Rows go after some days.
CREATE TABLE speculation (
    org text NOT NULL,
    project text NOT NULL,
    workflow_id uuid NOT NULL,
    principal text NOT NULL,
    speculated_at timestamptz NOT NULL,
    PRIMARY KEY (org, project, workflow_id)
);

CREATE INDEX speculation_newest ON speculation (org, project, speculated_at DESC);
CREATE INDEX speculation_of_principal ON speculation (org, project, principal, speculated_at);
CREATE INDEX speculation_old ON speculation (speculated_at);

-- Whether a principal found the run of a guess useful; the last opinion of each.
CREATE TABLE speculation_opinion (
    org text NOT NULL,
    project text NOT NULL,
    workflow_id uuid NOT NULL,
    principal text NOT NULL,
    useful boolean NOT NULL,
    given_at timestamptz NOT NULL,
    PRIMARY KEY (org, project, workflow_id, principal),
    FOREIGN KEY (org, project, workflow_id)
        REFERENCES speculation (org, project, workflow_id) ON DELETE CASCADE
);

CREATE INDEX speculation_opinion_newest ON speculation_opinion (org, project, given_at DESC);
CREATE INDEX speculation_opinion_of_principal
    ON speculation_opinion (org, project, principal, given_at);
