ALTER TABLE execution_trace ADD COLUMN node_id text, ADD COLUMN name text;

COMMENT ON COLUMN execution_trace.node_id IS 'of a run inside another: the call that led to it';
COMMENT ON COLUMN execution_trace.name IS 'of a run inside another: what was called';
