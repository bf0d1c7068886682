ALTER TABLE execution_trace ADD COLUMN dry_run boolean NOT NULL DEFAULT false;

COMMENT ON COLUMN execution_trace.dry_run IS 'mocks answered; nothing was learned';
