-- What the decision was made on: the digest of what its maker was shown, and whether they saw it
-- whole. It is made again of the analysis, the request and what the run waits for, all kept.
ALTER TABLE approval ADD COLUMN shown_digest text, ADD COLUMN shown_whole boolean;

CREATE OR REPLACE VIEW workflow_now AS
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
