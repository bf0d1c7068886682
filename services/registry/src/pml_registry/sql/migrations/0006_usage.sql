-- How a capability fared changes with every run, what it is found by hardly ever. Apart from it, a
-- run adds nothing to the indexes of meaning and of words.
CREATE TABLE capability_usage (
    org text NOT NULL,
    project text NOT NULL,
    pattern_id uuid NOT NULL,
    usage_count integer NOT NULL DEFAULT 0,
    success_count integer NOT NULL DEFAULT 0,
    mean_duration_ms double precision NOT NULL DEFAULT 0,
    learning json NOT NULL DEFAULT '{}',
    learning_revision integer NOT NULL DEFAULT 0,
    learned_at timestamptz,
    PRIMARY KEY (org, project, pattern_id),
    FOREIGN KEY (org, project, pattern_id)
        REFERENCES workflow_pattern (org, project, pattern_id) ON DELETE CASCADE
);

INSERT INTO capability_usage
SELECT
    org, project, pattern_id, usage_count, success_count, mean_duration_ms, learning,
    learning_revision, CASE WHEN learning_revision > 0 THEN updated_at END
FROM workflow_pattern;

CREATE INDEX capability_usage_most ON capability_usage (org, project, usage_count DESC);

DROP VIEW capability;

ALTER TABLE workflow_pattern
    DROP COLUMN usage_count,
    DROP COLUMN success_count,
    DROP COLUMN mean_duration_ms,
    DROP COLUMN learning,
    DROP COLUMN learning_revision;

CREATE VIEW capability AS
SELECT
    org, project, pattern_id, record.name, record.namespace IS NOT NULL AS named, pattern.listed,
    pattern.code, pattern.code_hash, pattern.description, pattern.parameters_schema,
    pattern.structure, pattern.tools_used, usage.usage_count, usage.success_count,
    usage.mean_duration_ms, usage.learning, usage.learning_revision, pattern.created_by,
    pattern.created_at, greatest(pattern.updated_at, usage.learned_at) AS updated_at,
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
JOIN capability_records record USING (org, project, pattern_id)
JOIN capability_usage usage USING (org, project, pattern_id);
