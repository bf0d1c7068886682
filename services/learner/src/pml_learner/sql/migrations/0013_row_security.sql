-- All tables are kept apart by scope: protect() is of pml_common.storage. The tables of months are
-- protected, too: nothing reads them but through execution_trace.
SELECT protect(oid)
FROM pg_class
WHERE relnamespace = current_schema()::regnamespace
    AND relkind IN ('r', 'p', 'v') AND relname NOT IN ('schema_migration', 'inbox');

CREATE OR REPLACE FUNCTION make_trace_month(executed_at timestamptz) RETURNS void LANGUAGE plpgsql AS $$
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
        PERFORM protect(name::regclass);
        EXECUTE format(
            'ALTER TABLE execution_trace ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)',
            name, first_moment, next_month
        );
    END IF;
END
$$;

CREATE FUNCTION require_trace_month(name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (
        SELECT
        FROM pg_inherits
        WHERE inhparent = 'execution_trace'::regclass AND inhrelid = to_regclass(quote_ident(name))
    ) THEN
        RAISE EXCEPTION '% is no month of execution_trace', name;
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION drop_trace_month(name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM require_trace_month(name);
    EXECUTE format('DROP TABLE %I', name);
END
$$;

CREATE OR REPLACE FUNCTION analyze_trace_month(name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM require_trace_month(name);
    EXECUTE format('ANALYZE %I', name);
END
$$;

-- What makes, drops and analyses tables as their owner is for work over many scopes alone.
DO $$
DECLARE
    of_owner regprocedure;
BEGIN
    FOR of_owner IN
        SELECT oid
        FROM pg_proc
        WHERE pronamespace = current_schema()::regnamespace
            AND proname IN ('make_trace_month', 'drop_trace_month', 'analyze_trace_month')
    LOOP
        EXECUTE format(
            'ALTER FUNCTION %s SECURITY DEFINER SET search_path = %I, pg_temp',
            of_owner, current_schema()
        );
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', of_owner);
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', of_owner, role_named('batch'));
    END LOOP;
END
$$;
