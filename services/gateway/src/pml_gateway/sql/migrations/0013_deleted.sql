-- When the caller deleted the workflow's data: program, arguments, analysis, result, error and calls
-- are gone, and in `requested` only who and when is left.
ALTER TABLE workflow ADD COLUMN deleted_at timestamptz;

-- To find the calls of a workflow whose data is deleted.
CREATE INDEX tool_call_workflow ON tool_call (org, project, workflow_id);

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
