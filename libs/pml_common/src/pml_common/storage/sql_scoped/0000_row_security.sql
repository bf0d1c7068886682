-- Rows are kept apart by scope a second time, below the queries (decisions/0023). The owner runs
-- migrations; queries run as one of three roles, which pml_common.storage.roles makes and names:
-- `<owner>_<schema>_app`, bound to one scope per transaction; `<owner>_<schema>_reach`, bound as well,
-- which reads what other scopes share, too; `<owner>_<schema>_batch`, for work over many scopes.
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
        'GRANT USAGE ON SCHEMA %I TO %I, %I, %I',
        current_schema(), role_named('app'), role_named('reach'), role_named('batch')
    );
END
$$;

-- Every table and every view of this schema is protected by one call, in the migration that makes
-- it; seen: what of other scopes may be read, too. A view reads as its caller, not as its owner. What
-- has no scope is the deployment's: all read it, and work over many scopes changes it.
CREATE FUNCTION protect(relation regclass, seen text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    app text := role_named('app');
    reach text := role_named('reach');
    batch text := role_named('batch');
    -- By the function of `=`: an operator would count as a second condition on the same columns,
    -- and rows so rare would make any index of the scope look as good as the right one.
    bound constant text :=
        'texteq(org, current_setting(''pml.org'', true)) '
        'AND texteq(project, current_setting(''pml.project'', true))';
    migrating constant text := 'current_setting(''pml.migrating'', true) = ''on''';
    is_view boolean := relkind = 'v' FROM pg_class WHERE oid = relation;
    has_scope boolean := EXISTS (
        SELECT FROM pg_attribute WHERE attrelid = relation AND attname = 'org'
    );
    former name;
BEGIN
    IF is_view THEN
        EXECUTE format('ALTER VIEW %s SET (security_invoker = true)', relation);
        EXECUTE format('GRANT SELECT ON %s TO %I, %I, %I', relation, app, reach, batch);
        RETURN;
    END IF;
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', relation);
    EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', relation);
    EXECUTE format(
        'GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO %I, %I, %I', relation, app, reach, batch
    );
    FOR former IN SELECT polname FROM pg_policy WHERE polrelid = relation LOOP
        EXECUTE format('DROP POLICY %I ON %s', former, relation);
    END LOOP;
    IF has_scope THEN
        EXECUTE format(
            'CREATE POLICY scope ON %s TO %I, %I USING (%s)', relation, app, reach, bound
        );
    ELSE
        EXECUTE format(
            'CREATE POLICY deployment ON %s FOR SELECT TO %I, %I USING (true)', relation, app, reach
        );
    END IF;
    IF seen IS NOT NULL THEN
        EXECUTE format(
            'CREATE POLICY shared ON %s FOR SELECT TO %I USING (%s)', relation, reach, seen
        );
    END IF;
    EXECUTE format('CREATE POLICY batch ON %s TO %I USING (true)', relation, batch);
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

SELECT protect('inbox');

DO $$
BEGIN
    EXECUTE format(
        'CREATE POLICY former ON inbox FOR SELECT TO %I, %I '
        'USING (org IS NULL AND handled_at <= %L::timestamptz)',
        role_named('app'), role_named('reach'), now()
    );
END
$$;
