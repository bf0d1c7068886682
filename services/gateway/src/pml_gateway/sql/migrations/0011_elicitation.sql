-- Whether a form that is answered over a credential's connection decides approvals: the latest row of
-- its principal, none: no. Rows stay, as the record of who set it when.
CREATE TABLE elicitation (
    org text NOT NULL,
    project text NOT NULL,
    principal text NOT NULL,
    setting_id bigint GENERATED ALWAYS AS IDENTITY,
    may_elicit boolean NOT NULL,
    set_by text NOT NULL,
    set_at timestamptz NOT NULL,
    PRIMARY KEY (org, project, principal, setting_id)
);

-- By which way a decision came, if not with the approver's key.
ALTER TABLE approval ADD COLUMN decided_through json;

DROP VIEW workflow_now;
CREATE VIEW workflow_now AS
SELECT
    workflow.*,
    approval.requested_at AS asked_at,
    approval.expires_at,
    approval.outcome,
    approval.decided_by,
    approval.decided_at,
    approval.reason,
    approval.parked,
    approval.shown_digest,
    approval.shown_whole,
    approval.decided_through
FROM workflow
LEFT JOIN approval USING (org, project, approval_id);
