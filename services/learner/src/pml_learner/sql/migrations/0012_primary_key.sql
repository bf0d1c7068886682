-- The id leads: a new month has no statistics, and by equal estimates the planner looked a trace up
-- among all of its scope, by whichever index began with it.
ALTER TABLE execution_trace DROP CONSTRAINT execution_trace_pkey;
ALTER TABLE execution_trace ADD PRIMARY KEY (id, org, project, executed_at);
