-- name: unnamed-capabilities
-- Listed, under a provisional name alone, and seen by the principal $5, an admin or not: $6.
SELECT
    pattern_id, name, owner, description, tools_used, code, usage_count, success_count,
    caller_faults, environment_faults, mean_duration_ms
FROM capability
WHERE org = $1 AND project = $2 AND listed AND NOT named
    AND usage_count >= $3
    AND (visibility <> 'private' OR $5::text IS NULL OR owner = $5 OR $6)
ORDER BY usage_count DESC, name COLLATE "C"
LIMIT $4

-- name: count-unnamed
SELECT count(*)
FROM capability_records record
JOIN capability_versions version USING (org, project, record_id)
JOIN workflow_pattern pattern USING (org, project, pattern_id)
WHERE org = $1 AND project = $2 AND record.namespace IS NULL
    AND version.number = record.latest AND pattern.listed

-- name: taken-callable-names
SELECT callable_name
FROM capability_name
WHERE org = $1 AND project = $2 AND callable_name = ANY ($3)
UNION
SELECT callable_name
FROM name_reservations
WHERE org = $1 AND project = $2 AND callable_name = ANY ($3)

-- name: suggestions
SELECT pattern_id, name, confidence, reasons, source
FROM curation_suggestions
WHERE org = $1 AND project = $2 AND pattern_id = ANY ($3)

-- name: keep-suggestions
INSERT INTO curation_suggestions (
    org, project, pattern_id, name, confidence, reasons, source
)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (org, project, pattern_id) DO UPDATE
SET name = excluded.name,
    confidence = excluded.confidence,
    reasons = excluded.reasons,
    source = excluded.source,
    suggested_at = now()

-- name: claim-uncurated
-- Scopes with at least $1 listed unnamed capabilities for which no name is suggested yet, the most
-- first, without those that another replica looks after at $3.
WITH uncurated AS (
    SELECT org, project
    FROM capability_records record
    JOIN capability_versions version USING (org, project, record_id)
    JOIN workflow_pattern pattern USING (org, project, pattern_id)
    WHERE record.namespace IS NULL AND version.number = record.latest AND pattern.listed
        AND NOT EXISTS (
            SELECT
            FROM curation_suggestions suggested
            WHERE suggested.org = pattern.org AND suggested.project = pattern.project
                AND suggested.pattern_id = pattern.pattern_id
        )
    GROUP BY org, project
    HAVING count(*) >= $1
    ORDER BY count(*) DESC, org, project
    LIMIT $2
)
INSERT INTO curation_claims (org, project, claimed_until)
SELECT org, project, $4::timestamptz
FROM uncurated
ON CONFLICT (org, project) DO UPDATE
SET claimed_until = excluded.claimed_until
WHERE curation_claims.claimed_until <= $3::timestamptz
RETURNING org, project

-- name: release-curation
DELETE FROM curation_claims WHERE org = $1 AND project = $2

-- name: variant-groups
-- Succeeded behaviours of shapes that several have: at most $3 shapes, the most used first, and $4
-- behaviours of each, the offered one first. Not of shapes whose variants have become one.
WITH variant AS (
    SELECT
        pattern.shape_hash, pattern.pattern_id, pattern.code, usage.usage_count,
        coalesce(offered.pattern_id = pattern.pattern_id, false) AS is_offered,
        row_number() OVER (
            PARTITION BY pattern.shape_hash
            ORDER BY offered.pattern_id = pattern.pattern_id DESC NULLS LAST, pattern.created_at,
                pattern.pattern_id
        ) AS place,
        count(*) OVER shape AS variants,
        sum(usage.usage_count) OVER shape AS uses,
        bool_or(offered.pattern_id = pattern.pattern_id) OVER shape AS has_offered
    FROM workflow_pattern pattern
    JOIN capability_usage usage USING (org, project, pattern_id)
    LEFT JOIN offered_shapes offered
        ON offered.org = pattern.org AND offered.project = pattern.project
        AND offered.shape_hash = pattern.shape_hash
    WHERE pattern.org = $1 AND pattern.project = $2 AND pattern.shape_hash IS NOT NULL
        AND usage.success_count > 0
        -- Seen by the principal $5, an admin or not: $6.
        AND EXISTS (
            SELECT
            FROM capability_versions version
            JOIN capability_records record USING (org, project, record_id)
            WHERE org = $1 AND project = $2 AND version.pattern_id = pattern.pattern_id
                AND (
                    record.visibility <> 'private' OR $5::text IS NULL
                    OR record.owner = $5 OR $6
                )
        )
    WINDOW shape AS (PARTITION BY pattern.shape_hash)
), most AS (
    SELECT shape_hash
    FROM variant
    WHERE place = 1 AND variants > 1 AND has_offered
    ORDER BY uses DESC, shape_hash
    LIMIT $3
)
SELECT shape_hash, pattern_id, code, uses
FROM variant
JOIN most USING (shape_hash)
WHERE place <= $4
ORDER BY uses DESC, shape_hash, place

-- name: variants-of
-- A behaviour, then the succeeded ones of its shape, the oldest first.
SELECT pattern.pattern_id, pattern.code
FROM workflow_pattern pattern
JOIN capability_usage usage USING (org, project, pattern_id)
WHERE pattern.org = $1 AND pattern.project = $2
    AND pattern.shape_hash = (
        SELECT shape_hash
        FROM workflow_pattern
        WHERE org = $1 AND project = $2 AND pattern_id = $3
    )
    AND (usage.success_count > 0 OR pattern.pattern_id = $3)
    -- Seen by the principal $5, an admin or not: $6.
    AND EXISTS (
        SELECT
        FROM capability_versions version
        JOIN capability_records record USING (org, project, record_id)
        WHERE org = $1 AND project = $2 AND version.pattern_id = pattern.pattern_id
            AND (
                record.visibility <> 'private' OR $5::text IS NULL
                OR record.owner = $5 OR $6
            )
    )
ORDER BY pattern.pattern_id <> $3, pattern.created_at, pattern.pattern_id
LIMIT $4

-- name: unread-shapes
SELECT org, project, pattern_id, code, code_hash
FROM workflow_pattern
WHERE shape_hash IS NULL
ORDER BY org, project, pattern_id
LIMIT $1

-- name: set-shape
UPDATE workflow_pattern
SET shape_hash = $4, makes_calls = $5
WHERE org = $1 AND project = $2 AND pattern_id = $3 AND shape_hash IS NULL

-- name: hand-over-shape
-- $4 is offered in place of the unnamed behaviours of the shape of $3.
WITH shape AS (
    SELECT shape_hash
    FROM workflow_pattern
    WHERE org = $1 AND project = $2 AND pattern_id = $3 AND shape_hash IS NOT NULL
), offered AS (
    INSERT INTO offered_shapes (org, project, shape_hash, pattern_id)
    SELECT $1, $2, shape_hash, $4
    FROM shape
    ON CONFLICT (org, project, shape_hash) DO UPDATE SET pattern_id = excluded.pattern_id
    RETURNING shape_hash
)
UPDATE workflow_pattern pattern
SET listed = false, updated_at = now()
FROM offered
WHERE pattern.org = $1 AND pattern.project = $2 AND pattern.shape_hash = offered.shape_hash
    AND pattern.listed AND pattern.pattern_id <> $4
    AND NOT EXISTS (
        SELECT
        FROM capability_versions version
        JOIN capability_records record USING (org, project, record_id)
        WHERE org = $1 AND project = $2 AND version.pattern_id = pattern.pattern_id
            AND record.namespace IS NOT NULL
    )
