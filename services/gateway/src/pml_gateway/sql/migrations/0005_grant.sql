-- The grant that a run goes by: calls name it by its digest.
ALTER TABLE workflow ADD COLUMN granted json;

-- Runs that wait under a grant of before arguments were bound cannot go on.
UPDATE workflow
SET
    state = 'failed',
    error = '{"kind": "denied", "message": "The approval is of an older version of PML, which did not bind arguments: run it again."}',
    due_at = NULL,
    finished_at = now()
WHERE state = 'awaiting_approval' AND EXISTS (
    SELECT
    FROM approval
    WHERE approval.approval_id = workflow.approval_id AND approval.parked IS NOT NULL
);
UPDATE approval SET parked = NULL WHERE parked IS NOT NULL;

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
    approval.parked
FROM workflow
LEFT JOIN approval USING (org, project, approval_id);
