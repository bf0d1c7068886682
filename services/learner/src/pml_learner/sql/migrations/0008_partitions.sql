-- Traces by the month in which they were executed (UTC): a month that is old is dropped whole. A
-- parent may be of another month, and gone before its child, so that no foreign key holds it.
ALTER TABLE execution_trace RENAME TO execution_trace_before;

ALTER TABLE execution_trace_before DROP CONSTRAINT execution_trace_pkey CASCADE;

DROP INDEX
    idx_exec_trace_capability, idx_exec_trace_timestamp, idx_exec_trace_workflow,
    idx_exec_trace_user, idx_exec_trace_path, idx_exec_trace_priority, idx_exec_trace_age,
    idx_exec_trace_discovery;

CREATE TABLE execution_trace (
    LIKE execution_trace_before INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING COMMENTS,
    PRIMARY KEY (org, project, id, executed_at),
    FOREIGN KEY (org, project, capability_id)
        REFERENCES learning (org, project, capability_id)
) PARTITION BY RANGE (executed_at);

CREATE INDEX idx_exec_trace_capability
    ON execution_trace (org, project, capability_id, executed_at DESC);
CREATE INDEX idx_exec_trace_timestamp ON execution_trace (org, project, executed_at DESC);
CREATE INDEX idx_exec_trace_workflow ON execution_trace (org, project, workflow_id);
CREATE INDEX idx_exec_trace_user ON execution_trace (org, project, user_id);
CREATE INDEX idx_exec_trace_path ON execution_trace USING gin (executed_path);
CREATE INDEX idx_exec_trace_priority
    ON execution_trace (org, project, capability_id, priority DESC, executed_at DESC);
CREATE INDEX idx_exec_trace_surprise
    ON execution_trace (org, project, priority DESC, executed_at DESC);
CREATE INDEX idx_exec_trace_discovery ON execution_trace (org, project, discovery_id)
    WHERE discovery_id IS NOT NULL;
-- An intent may be longer than an index entry.
CREATE INDEX idx_exec_trace_intent
    ON execution_trace (org, project, md5(intent_text), executed_at DESC)
    WHERE intent_text IS NOT NULL;

-- Attached, not created in place: that would hold back all who read and write meanwhile.
CREATE FUNCTION make_trace_month(executed_at timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    first_moment timestamptz := date_trunc('month', executed_at, 'UTC');
    next_month timestamptz := date_trunc('month', first_moment + interval '32 days', 'UTC');
    name text := 'execution_trace_' || to_char(first_moment AT TIME ZONE 'UTC', 'YYYY_MM');
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('learner.execution_trace', 0));
    IF to_regclass(format('%I.%I', current_schema, name)) IS NULL THEN
        EXECUTE format(
            'CREATE TABLE %I (LIKE execution_trace INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', name
        );
        EXECUTE format(
            'ALTER TABLE execution_trace ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
            name, first_moment, next_month
        );
    END IF;
END
$$;

CREATE FUNCTION drop_trace_month(name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('DROP TABLE %I', name);
END
$$;

SELECT make_trace_month(month)
FROM (
    SELECT DISTINCT date_trunc('month', executed_at, 'UTC') AS month FROM execution_trace_before
    UNION
    SELECT date_trunc('month', now() + after, 'UTC')
    FROM unnest(ARRAY[interval '0', interval '31 days']) AS after
) AS months
ORDER BY month;

INSERT INTO execution_trace SELECT * FROM execution_trace_before;

DROP TABLE execution_trace_before;

COMMENT ON TABLE execution_trace IS 'by month; make_trace_month makes the table of one';
