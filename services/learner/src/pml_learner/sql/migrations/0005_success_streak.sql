-- Runs that succeeded since the last that did not. Of a capability with a failure it is not known
-- and counted from here on.
ALTER TABLE learning ADD COLUMN success_streak integer NOT NULL DEFAULT 0;

UPDATE learning SET success_streak = run_count WHERE success_count = run_count;
