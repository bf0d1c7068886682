-- By which calls made again find the workflow that they join: it needed a person, and its caller has
-- not got its result. Null for workflows that none may join.
ALTER TABLE workflow ADD COLUMN call_digest text, ADD COLUMN delivered_at timestamptz;

CREATE INDEX workflow_joinable ON workflow (org, project, call_digest, created_at DESC)
    WHERE call_digest IS NOT NULL AND approval_id IS NOT NULL AND delivered_at IS NULL;

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
    approval.shown_whole
FROM workflow
LEFT JOIN approval USING (org, project, approval_id);
