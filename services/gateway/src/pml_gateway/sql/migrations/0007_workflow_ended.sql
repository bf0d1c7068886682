-- To find those that are old enough to be deleted.
CREATE INDEX workflow_ended ON workflow (finished_at)
    WHERE finished_at IS NOT NULL AND approval_id IS NULL;
