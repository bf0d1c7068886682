-- Each version is signed by the registry (docs/registry.md). Versions from before have no signature
-- until the registry has started once; old processes add none.
ALTER TABLE capability_versions
    ADD COLUMN signature text,
    ADD COLUMN key_id text,
    ADD CHECK ((signature IS NULL) = (key_id IS NULL));

-- Runs that succeeded since the last that did not, as learned.
ALTER TABLE capability_usage ADD COLUMN success_streak integer NOT NULL DEFAULT 0;

UPDATE capability_usage SET success_streak = usage_count WHERE success_count = usage_count;

DROP VIEW behaviour;
DROP VIEW capability;
DROP VIEW capability_version;

CREATE VIEW capability_version AS
SELECT
    org, project, record_id, pattern_id, version.number, version.number = record.latest AS is_latest,
    version.tag, version.yanked_reason, version.signature, version.key_id, record.name,
    record.namespace IS NOT NULL AS named, record.named_at, record.owner, record.visibility,
    record.tags, record.forked_from, pattern.listed, pattern.code, pattern.code_hash,
    pattern.description, pattern.parameters_schema, pattern.structure, pattern.tools_used,
    usage.usage_count, usage.success_count, usage.success_streak, usage.mean_duration_ms,
    usage.learning, usage.learning_revision, pattern.created_by, pattern.created_at,
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

CREATE VIEW behaviour AS
SELECT DISTINCT ON (org, project, pattern_id) *
FROM capability_version
ORDER BY org, project, pattern_id, named DESC, named_at, record_id, number DESC;
