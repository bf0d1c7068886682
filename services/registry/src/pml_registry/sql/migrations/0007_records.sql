-- A record is what people name, with an id of its own; it has versions, and a version is code:
-- a row of workflow_pattern (behaviour), which may stand in several records.
DROP VIEW capability;
DROP VIEW capability_name;

ALTER TABLE capability_aliases DROP CONSTRAINT capability_aliases_org_project_pattern_id_fkey;
DROP INDEX capability_aliases_pattern;

ALTER TABLE capability_records
    ADD COLUMN record_id uuid NOT NULL DEFAULT gen_random_uuid(),
    -- Number of the version that is meant where none is asked for: the newest that is not yanked.
    ADD COLUMN latest integer NOT NULL DEFAULT 1,
    ADD COLUMN owner text,
    ADD COLUMN visibility text NOT NULL DEFAULT 'project'
        CHECK (visibility IN ('private', 'project', 'org', 'public')),
    ADD COLUMN tags text[] NOT NULL DEFAULT '{}',
    -- The record and version that it was forked from, as a reference.
    ADD COLUMN forked_from text,
    DROP CONSTRAINT capability_records_pkey,
    DROP CONSTRAINT capability_records_org_project_pattern_id_key,
    DROP COLUMN hash;

ALTER TABLE capability_records
    ALTER COLUMN record_id DROP DEFAULT,
    ALTER COLUMN latest DROP DEFAULT,
    ADD PRIMARY KEY (org, project, record_id),
    ADD CONSTRAINT capability_records_name UNIQUE (org, project, name);

CREATE TABLE capability_versions (
    org text NOT NULL,
    project text NOT NULL,
    record_id uuid NOT NULL,
    number integer NOT NULL CHECK (number > 0),
    pattern_id uuid NOT NULL,
    -- Three numbers, `v1.2.0` without its letter; of one version of a record only.
    tag integer[] CHECK (cardinality(tag) = 3),
    change_summary text NOT NULL DEFAULT '',
    created_by text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    yanked_reason text,
    PRIMARY KEY (org, project, record_id, number),
    UNIQUE (org, project, record_id, tag),
    FOREIGN KEY (org, project, record_id)
        REFERENCES capability_records (org, project, record_id) ON DELETE CASCADE,
    FOREIGN KEY (org, project, pattern_id)
        REFERENCES workflow_pattern (org, project, pattern_id) ON DELETE CASCADE
);

CREATE INDEX capability_versions_pattern ON capability_versions (org, project, pattern_id);

INSERT INTO capability_versions (
    org, project, record_id, number, pattern_id, created_by, created_at
)
SELECT org, project, record_id, 1, pattern_id, pattern.created_by, pattern.created_at
FROM capability_records
JOIN workflow_pattern pattern USING (org, project, pattern_id);

UPDATE capability_records record
SET owner = pattern.created_by
FROM workflow_pattern pattern
WHERE pattern.org = record.org AND pattern.project = record.project
    AND pattern.pattern_id = record.pattern_id;

ALTER TABLE capability_aliases ADD COLUMN record_id uuid;

UPDATE capability_aliases former
SET record_id = record.record_id
FROM capability_records record
WHERE record.org = former.org AND record.project = former.project
    AND record.pattern_id = former.pattern_id;

ALTER TABLE capability_aliases
    ALTER COLUMN record_id SET NOT NULL,
    DROP COLUMN pattern_id,
    ADD FOREIGN KEY (org, project, record_id)
        REFERENCES capability_records (org, project, record_id) ON DELETE CASCADE;

ALTER TABLE capability_records
    ALTER COLUMN owner SET NOT NULL,
    DROP COLUMN pattern_id;

CREATE INDEX capability_aliases_record ON capability_aliases (org, project, record_id);

-- Every name that leads to a record.
CREATE VIEW capability_name AS
SELECT org, project, record_id, name, callable_name, named_at FROM capability_records
UNION ALL
SELECT org, project, record_id, alias, callable_name, named_at FROM capability_aliases;

-- Every version of every record; is_latest: the one that is meant where none is asked for.
CREATE VIEW capability_version AS
SELECT
    org, project, record_id, pattern_id, version.number, version.number = record.latest AS is_latest,
    version.tag, version.yanked_reason, record.name, record.namespace IS NOT NULL AS named,
    record.named_at, record.owner, record.visibility, record.tags, record.forked_from,
    pattern.listed, pattern.code, pattern.code_hash, pattern.description,
    pattern.parameters_schema, pattern.structure, pattern.tools_used, usage.usage_count,
    usage.success_count, usage.mean_duration_ms, usage.learning, usage.learning_revision,
    pattern.created_by, pattern.created_at,
    greatest(pattern.updated_at, usage.learned_at) AS updated_at,
    ARRAY(
        SELECT former.alias
        FROM capability_aliases former
        WHERE former.org = record.org
            AND former.project = record.project
            AND former.record_id = record.record_id
        ORDER BY former.alias COLLATE "C"
    ) AS aliases,
    record.cache_policy, record.cache_ttl_s, record.cache_forced, record.cache_revision
FROM workflow_pattern pattern
JOIN capability_usage usage USING (org, project, pattern_id)
JOIN capability_versions version USING (org, project, pattern_id)
JOIN capability_records record USING (org, project, record_id);

CREATE VIEW capability AS
SELECT * FROM capability_version WHERE is_latest;

-- A behaviour under the name of the record that had it first, a given one before a provisional one.
CREATE VIEW behaviour AS
SELECT DISTINCT ON (org, project, pattern_id) *
FROM capability_version
ORDER BY org, project, pattern_id, named DESC, named_at, record_id, number DESC;

-- Names kept for workflows that run under them. After lapses_at it is asked whether the workflow
-- was accepted and how it stands. settled: the name is given, and the change not yet published.
CREATE TABLE name_reservations (
    org text NOT NULL,
    project text NOT NULL,
    workflow_id uuid NOT NULL,
    name text NOT NULL,
    callable_name text NOT NULL GENERATED ALWAYS AS (
        regexp_replace(regexp_replace(name, '[^a-zA-Z0-9_]', '_', 'g'), '^(?=[0-9])', '_')
    ) STORED,
    pattern_id uuid NOT NULL,
    purpose text NOT NULL CHECK (purpose IN ('create', 'alias', 'version')),
    principal text NOT NULL,
    record_id uuid,
    tag integer[],
    change_summary text NOT NULL,
    lapses_at timestamptz NOT NULL,
    settled boolean NOT NULL DEFAULT false,
    PRIMARY KEY (org, project, workflow_id),
    UNIQUE (org, project, callable_name),
    FOREIGN KEY (org, project, pattern_id)
        REFERENCES workflow_pattern (org, project, pattern_id) ON DELETE CASCADE
);

CREATE INDEX name_reservations_lapsing ON name_reservations (lapses_at);
