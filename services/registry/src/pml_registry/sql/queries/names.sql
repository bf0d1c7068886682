-- name: holder-of-name
-- The record that a name leads to, or one with the same callable name: that with the name first.
SELECT
    record_id, name, owner, latest, visibility = 'private' AS is_private,
    ARRAY(
        SELECT pattern_id
        FROM capability_versions version
        WHERE version.org = $1 AND version.project = $2
            AND version.record_id = record.record_id
        ORDER BY number
    ) AS behaviours,
    ARRAY(
        SELECT array_to_string(tag, '.')
        FROM capability_versions version
        WHERE version.org = $1 AND version.project = $2
            AND version.record_id = record.record_id AND tag IS NOT NULL
    ) AS tags
FROM capability_records record
WHERE org = $1 AND project = $2
    AND record_id = (
        SELECT record_id
        FROM capability_name
        WHERE org = $1 AND project = $2 AND (name = $3 OR callable_name = $4)
        ORDER BY name <> $3, named_at, record_id
        LIMIT 1
    )

-- name: record-of-code
-- The named record that has a behaviour: one of the principal $4 before others', one that means it
-- before those that had it, then the one that was named first.
SELECT
    record_id, name, owner, latest, visibility = 'private' AS is_private,
    ARRAY(
        SELECT pattern_id
        FROM capability_versions every
        WHERE every.org = $1 AND every.project = $2 AND every.record_id = record.record_id
        ORDER BY number
    ) AS behaviours,
    ARRAY[]::text[] AS tags
FROM capability_records record
JOIN capability_versions version USING (org, project, record_id)
WHERE org = $1 AND project = $2 AND version.pattern_id = $3 AND namespace IS NOT NULL
ORDER BY owner <> $4, version.number <> latest, named_at, record_id
LIMIT 1

-- name: reservation-of-name
SELECT * FROM name_reservations WHERE org = $1 AND project = $2 AND callable_name = $3

-- name: reservation-of-workflow
SELECT * FROM name_reservations WHERE org = $1 AND project = $2 AND workflow_id = $3 FOR UPDATE

-- name: reserve-name
-- A workflow has one name: a repetition renews it.
INSERT INTO name_reservations (
    org, project, workflow_id, name, pattern_id, purpose, principal, record_id, tag,
    change_summary, intent, lapses_at
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
ON CONFLICT (org, project, workflow_id) DO UPDATE
SET lapses_at = excluded.lapses_at,
    purpose = excluded.purpose,
    record_id = excluded.record_id
WHERE NOT name_reservations.settled

-- name: lapsed-reservations
SELECT * FROM name_reservations WHERE lapses_at <= $1 ORDER BY lapses_at LIMIT $2

-- name: renew-reservation
UPDATE name_reservations
SET lapses_at = $4
WHERE org = $1 AND project = $2 AND workflow_id = $3

-- name: release-name
DELETE FROM name_reservations WHERE org = $1 AND project = $2 AND workflow_id = $3

-- name: mark-settled
UPDATE name_reservations
SET settled = true, record_id = $4
WHERE org = $1 AND project = $2 AND workflow_id = $3

-- name: name-unnamed-record
-- Give a behaviour's provisional record its name; the former one stays as an alias.
WITH unnamed AS (
    SELECT record.record_id, record.name, record.named_at
    FROM capability_records record
    JOIN capability_versions version USING (org, project, record_id)
    WHERE org = $1 AND project = $2 AND version.pattern_id = $3 AND record.namespace IS NULL
    LIMIT 1
), former AS (
    INSERT INTO capability_aliases (org, project, alias, record_id, named_at)
    SELECT $1, $2, name, record_id, named_at
    FROM unnamed
)
UPDATE capability_records record
SET name = $4, namespace = $5, action = $6, owner = $7, named_at = now(), updated_at = now()
FROM unnamed
WHERE record.org = $1 AND record.project = $2 AND record.record_id = unnamed.record_id
RETURNING record.record_id

-- name: add-alias
INSERT INTO capability_aliases (org, project, alias, record_id)
VALUES ($1, $2, $4, $3)

-- name: add-version
INSERT INTO capability_versions (
    org, project, record_id, number, pattern_id, description, tag, change_summary, created_by
)
SELECT
    $1, $2, $3, max(number) + 1, $4, $8,
    -- Another version may have been given the tag since it was reserved.
    CASE WHEN bool_or(tag = $5) THEN NULL ELSE $5 END,
    $6, $7
FROM capability_versions
WHERE org = $1 AND project = $2 AND record_id = $3
RETURNING number

-- name: describe-version
-- What the versions of a record with this behaviour are for.
UPDATE capability_versions
SET description = $5
WHERE org = $1 AND project = $2 AND record_id = $3 AND pattern_id = $4

-- name: note-version
-- In the history of a record: what was done about the newest version with this behaviour.
INSERT INTO capability_changes (
    org, project, record_id, sequence, change, principal, version, pattern_id, tag, details
)
SELECT
    $1, $2, $3,
    (
        SELECT coalesce(max(sequence), 0) + 1
        FROM capability_changes
        WHERE org = $1 AND project = $2 AND record_id = $3
    ),
    $4, $5, number, pattern_id, tag, $7::jsonb
FROM capability_versions
WHERE org = $1 AND project = $2 AND record_id = $3 AND pattern_id = $6
ORDER BY number DESC
LIMIT 1

-- name: set-latest
UPDATE capability_records
SET latest = $4, updated_at = now()
WHERE org = $1 AND project = $2 AND record_id = $3

-- name: absorb-unnamed-record
-- The names of a behaviour's provisional record lead to the record that has it as a version now.
WITH unnamed AS (
    DELETE FROM capability_records record
    USING capability_versions version
    WHERE record.org = $1 AND record.project = $2 AND record.namespace IS NULL
        AND version.org = $1 AND version.project = $2 AND version.record_id = record.record_id
        AND version.pattern_id = $4
    RETURNING record.record_id, record.name, record.named_at
)
INSERT INTO capability_aliases (org, project, alias, record_id, named_at)
SELECT $1, $2, name, $3, named_at
FROM unnamed

-- name: describe-behaviour
-- What it is found by, under a name of its own; a run of it has succeeded.
UPDATE workflow_pattern
SET document = $4, terms = $5::jsonb, description = $6, listed = true, updated_at = now()
WHERE org = $1 AND project = $2 AND pattern_id = $3

-- name: behaviour-texts
-- Under the name of the record that stands for it.
SELECT name, description, tools_used, parameters_schema
FROM capability_version
WHERE org = $1 AND project = $2 AND pattern_id = $3
ORDER BY named DESC, named_at, record_id
LIMIT 1

-- name: latest-description
SELECT description FROM capability WHERE org = $1 AND project = $2 AND record_id = $3
