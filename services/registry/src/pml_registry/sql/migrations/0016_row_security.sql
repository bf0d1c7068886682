-- Rows are kept apart by scope a second time, below the queries. The owner runs migrations; queries
-- run as one of two roles, which pml_common.storage.roles makes and names: `<owner>_<schema>_app`,
-- bound to one scope per transaction, and `<owner>_<schema>_batch`, for work over many scopes.
CREATE FUNCTION role_named(kind text) RETURNS text
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT pg_get_userbyid(nspowner) || '_' || nspname || '_' || kind
    FROM pg_namespace
    WHERE nspname = current_schema();
END;

DO $$
BEGIN
    EXECUTE format(
        'GRANT USAGE ON SCHEMA %I TO %I, %I',
        current_schema(), role_named('app'), role_named('batch')
    );
END
$$;

-- Every table and every view of this schema is protected by one call, in the migration that makes
-- it; seen: what of other scopes may be read, too. A view reads as its caller, not as its owner.
CREATE FUNCTION protect(relation regclass, seen text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    app text := role_named('app');
    batch text := role_named('batch');
    bound constant text :=
        'org = current_setting(''pml.org'', true) AND project = current_setting(''pml.project'', true)';
    migrating constant text := 'current_setting(''pml.migrating'', true) = ''on''';
    is_view boolean := relkind = 'v' FROM pg_class WHERE oid = relation;
BEGIN
    IF is_view THEN
        EXECUTE format('ALTER VIEW %s SET (security_invoker = true)', relation);
        EXECUTE format('GRANT SELECT ON %s TO %I, %I', relation, app, batch);
        RETURN;
    END IF;
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', relation);
    EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', relation);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO %I, %I', relation, app, batch);
    EXECUTE format('DROP POLICY IF EXISTS own_scope ON %s', relation);
    EXECUTE format('CREATE POLICY own_scope ON %s TO %I USING (%s)', relation, app, bound);
    EXECUTE format('DROP POLICY IF EXISTS shared ON %s', relation);
    IF seen IS NOT NULL THEN
        EXECUTE format('CREATE POLICY shared ON %s FOR SELECT TO %I USING (%s)', relation, app, seen);
    END IF;
    EXECUTE format('DROP POLICY IF EXISTS batch ON %s', relation);
    EXECUTE format('CREATE POLICY batch ON %s TO %I USING (true)', relation, batch);
    EXECUTE format('DROP POLICY IF EXISTS migrations ON %s', relation);
    EXECUTE format(
        'CREATE POLICY migrations ON %s TO %I USING (%s)', relation, current_user, migrating
    );
END
$$;

-- A message is handled for the scope that it is of. Rows from before say no scope; they go within
-- days (INBOX_RETENTION), and until then a redelivery has to find them.
ALTER TABLE inbox
    ADD COLUMN org text DEFAULT nullif(current_setting('pml.org', true), ''),
    ADD COLUMN project text DEFAULT nullif(current_setting('pml.project', true), '');

SELECT protect('inbox', 'org IS NULL');

SELECT protect(oid)
FROM pg_class
WHERE relnamespace = current_schema()::regnamespace
    AND (
        relkind = 'v'
        OR (relkind IN ('r', 'p') AND relname NOT IN ('schema_migration', 'inbox'))
    );

-- What another scope shares is found by its names, and read with its versions and their code.
SELECT protect(
    'capability_records',
    'visibility = ''public'' OR (visibility = ''org'' AND org = current_setting(''pml.org'', true))'
);
SELECT protect(
    of_record,
    format(
        'EXISTS (SELECT FROM capability_records record WHERE record.org = %1$s.org'
        ' AND record.project = %1$s.project AND record.record_id = %1$s.record_id)',
        of_record
    )
)
FROM unnest(ARRAY['capability_aliases', 'capability_versions', 'capability_changes']::regclass[])
    AS of_record;
SELECT protect(
    of_behaviour,
    format(
        'EXISTS (SELECT FROM capability_versions version WHERE version.org = %1$s.org'
        ' AND version.project = %1$s.project AND version.pattern_id = %1$s.pattern_id)',
        of_behaviour
    )
)
FROM unnest(ARRAY['workflow_pattern', 'capability_usage']::regclass[]) AS of_behaviour;
