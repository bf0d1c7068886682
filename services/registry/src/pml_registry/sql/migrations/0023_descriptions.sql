-- What a version is for: stated by the run that made it succeed, by the version before it, or by its
-- owner. workflow_pattern.description is that of the version that stands for the behaviour; it counts
-- for a version that has none, as those do that a process of the former release makes.
ALTER TABLE capability_versions ADD COLUMN description text;

UPDATE capability_versions version
SET description = nullif(pattern.description, '')
FROM workflow_pattern pattern
WHERE pattern.org = version.org AND pattern.project = version.project
    AND pattern.pattern_id = version.pattern_id;

-- Of the workflow that the name is kept for; its version is described so once it has succeeded.
ALTER TABLE name_reservations ADD COLUMN intent text NOT NULL DEFAULT '';

CREATE OR REPLACE VIEW capability_version AS
SELECT
    org, project, record_id, pattern_id, version.number, version.number = record.latest AS is_latest,
    version.tag, version.yanked_reason, version.signature, version.key_id, record.name,
    record.namespace IS NOT NULL AS named, record.named_at, record.owner, record.visibility,
    record.tags, record.forked_from, pattern.listed, pattern.code, pattern.code_hash,
    coalesce(version.description, pattern.description) AS description, pattern.parameters_schema,
    pattern.structure, pattern.tools_used, usage.usage_count, usage.success_count,
    usage.success_streak, usage.mean_duration_ms, usage.learning, usage.learning_revision,
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

-- A view that is replaced reads as its owner until it is protected again.
SELECT protect('capability_version');
