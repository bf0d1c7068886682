-- All tables and the view are kept apart by scope: protect() is of pml_common.storage.
SELECT protect(oid)
FROM pg_class
WHERE relnamespace = current_schema()::regnamespace
    AND relkind IN ('r', 'p', 'v') AND relname NOT IN ('schema_migration', 'inbox');

-- The deletion of a workflow's data erases what was stated about it before rows said a scope, too.
DO $$
BEGIN
    EXECUTE format(
        'CREATE POLICY former_erased ON inbox FOR UPDATE TO %I '
        'USING (org IS NULL AND handled_at <= %L::timestamptz)',
        role_named('app'), now()
    );
END
$$;
