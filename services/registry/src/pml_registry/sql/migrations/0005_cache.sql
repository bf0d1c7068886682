-- Whether results of a capability answer calls with the same arguments. ttl null: as long as this
-- holds; the revision counts changes, so that no result outlives one.
ALTER TABLE capability_records
    ADD COLUMN cache_policy text NOT NULL DEFAULT 'none'
        CHECK (cache_policy IN ('none', 'memoize', 'persistent')),
    ADD COLUMN cache_ttl_s integer CHECK (cache_ttl_s > 0),
    ADD COLUMN cache_forced boolean NOT NULL DEFAULT false,
    ADD COLUMN cache_revision integer NOT NULL DEFAULT 0;

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
    ) AS aliases,
    record.cache_policy, record.cache_ttl_s, record.cache_forced, record.cache_revision
FROM workflow_pattern pattern
JOIN capability_records record USING (org, project, pattern_id);
