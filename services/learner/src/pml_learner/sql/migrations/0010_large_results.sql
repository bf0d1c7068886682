ALTER TABLE execution_trace ADD COLUMN large_results json;

COMMENT ON COLUMN execution_trace.large_results IS 'references to results that stand elsewhere';
