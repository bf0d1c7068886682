-- Why a row cannot be told; its due_at is infinity then: it waits for somebody to look at it.
ALTER TABLE outbox ADD COLUMN set_aside_because text;
