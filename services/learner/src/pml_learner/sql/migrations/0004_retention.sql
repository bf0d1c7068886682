-- To find those that are old enough to be deleted; small, since rows come in the order of time.
CREATE INDEX idx_exec_trace_age ON execution_trace USING brin (executed_at);
