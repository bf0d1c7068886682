-- What is learned of a behaviour's success: the rate with its interval, null before the first judged
-- run; the runs that others made fail, which are not judged; and its health, as judged by the
-- registry when it learned this. Behaviours from before are unproven until their next run.
ALTER TABLE capability_usage
    ADD COLUMN caller_faults integer NOT NULL DEFAULT 0,
    ADD COLUMN environment_faults integer NOT NULL DEFAULT 0,
    ADD COLUMN success_value double precision,
    ADD COLUMN success_low double precision,
    ADD COLUMN success_high double precision,
    ADD COLUMN health text NOT NULL DEFAULT 'unproven'
        CHECK (health IN ('healthy', 'unproven', 'degraded', 'failing'));

-- good_version: of a failing version the latest one before it that is healthy and not yanked.
CREATE OR REPLACE VIEW capability_version AS
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
    record.cache_policy, record.cache_ttl_s, record.cache_forced, record.cache_revision,
    pattern.source, usage.caller_faults, usage.environment_faults, usage.success_value,
    usage.success_low, usage.success_high, usage.health,
    CASE
        WHEN usage.health = 'failing' THEN (
            SELECT max(earlier.number)
            FROM capability_versions earlier
            JOIN capability_usage fared USING (org, project, pattern_id)
            WHERE earlier.org = record.org
                AND earlier.project = record.project
                AND earlier.record_id = record.record_id
                AND earlier.number < version.number
                AND earlier.yanked_reason IS NULL
                AND fared.health = 'healthy'
        )
    END AS good_version
FROM workflow_pattern pattern
JOIN capability_usage usage USING (org, project, pattern_id)
JOIN capability_versions version USING (org, project, pattern_id)
JOIN capability_records record USING (org, project, record_id);

CREATE OR REPLACE VIEW capability AS
SELECT * FROM capability_version WHERE is_latest;

-- A view that is replaced reads as its owner until it is protected again.
SELECT protect(replaced)
FROM unnest(ARRAY['capability_version', 'capability']::regclass[]) AS replaced;
