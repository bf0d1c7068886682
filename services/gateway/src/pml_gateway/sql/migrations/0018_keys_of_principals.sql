-- contract of 0001_workflow.sql: that a key is unique in its scope. Two principals may have one now.
--
-- The former release needs only that nobody else's row refuses its own: its workflows' ids are
-- derived from their keys, so the primary key refuses the same ones, and its inserts name no index.
-- It stores no principal. Its look for the workflow of a key that is taken goes by the plain index,
-- which the release after this one drops.
ALTER TABLE workflow ADD COLUMN principal text;
COMMENT ON COLUMN workflow.principal IS
    'Whose key it is; null for a workflow that has its id from before that mattered.';

CREATE UNIQUE INDEX workflow_key ON workflow (org, project, principal, idempotency_key);
CREATE INDEX workflow_former_key ON workflow (org, project, idempotency_key);
ALTER TABLE workflow DROP CONSTRAINT workflow_org_project_idempotency_key_key;

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
SELECT protect('workflow_now');
