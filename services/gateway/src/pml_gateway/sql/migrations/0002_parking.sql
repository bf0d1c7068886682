-- What the run waits for, where it stands at a call: as it crossed the bus.
ALTER TABLE approval ADD COLUMN parked json;

CREATE OR REPLACE VIEW workflow_now AS
SELECT
    workflow.*,
    approval.requested_at AS asked_at,
    approval.expires_at,
    approval.outcome,
    approval.decided_by,
    approval.decided_at,
    approval.reason,
    approval.parked
FROM workflow
LEFT JOIN approval USING (org, project, approval_id);
