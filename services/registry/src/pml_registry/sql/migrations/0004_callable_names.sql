-- What a capability is called in a program: its name with `_` for what cannot stand in an
-- identifier; pml_common.contracts.callable_names says the same in Python. Of several with one
-- callable name, the one that was named first has it.
ALTER TABLE capability_records
    ADD COLUMN callable_name text NOT NULL GENERATED ALWAYS AS (
        regexp_replace(regexp_replace(name, '[^a-zA-Z0-9_]', '_', 'g'), '^(?=[0-9])', '_')
    ) STORED,
    ADD COLUMN named_at timestamptz NOT NULL DEFAULT now();

UPDATE capability_records SET named_at = updated_at;

ALTER TABLE capability_aliases
    ADD COLUMN callable_name text NOT NULL GENERATED ALWAYS AS (
        regexp_replace(regexp_replace(alias, '[^a-zA-Z0-9_]', '_', 'g'), '^(?=[0-9])', '_')
    ) STORED,
    -- Since when it has been a name, not since when a former one.
    ADD COLUMN named_at timestamptz NOT NULL DEFAULT now();

UPDATE capability_aliases SET named_at = created_at;

CREATE INDEX capability_records_callable ON capability_records (org, project, callable_name);
CREATE INDEX capability_aliases_callable ON capability_aliases (org, project, callable_name);
CREATE INDEX capability_aliases_pattern ON capability_aliases (org, project, pattern_id);

-- Every name that leads to a capability.
CREATE VIEW capability_name AS
SELECT org, project, pattern_id, name, callable_name, named_at FROM capability_records
UNION ALL
SELECT org, project, pattern_id, alias, callable_name, named_at FROM capability_aliases;

CREATE OR REPLACE VIEW capability AS
SELECT
    org, project, pattern_id, record.name, record.namespace IS NOT NULL AS named, pattern.listed,
    pattern.code, pattern.code_hash, pattern.description, pattern.parameters_schema,
    pattern.structure, pattern.tools_used, pattern.usage_count, pattern.success_count,
    pattern.mean_duration_ms, pattern.learning, pattern.learning_revision, pattern.created_by,
    pattern.created_at, pattern.updated_at,
    ARRAY(
        SELECT former.alias
        FROM capability_aliases former
        WHERE former.org = pattern.org
            AND former.project = pattern.project
            AND former.pattern_id = pattern.pattern_id
        ORDER BY former.alias COLLATE "C"
    ) AS aliases
FROM workflow_pattern pattern
JOIN capability_records record USING (org, project, pattern_id);
