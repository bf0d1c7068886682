-- name: put-vectors
-- $1 to $4 columns of keys, $5 of vectors, $6 their model; a retired one gets none.
INSERT INTO search_vector (org, project, kind, id, model, listed, embedding)
SELECT
    stored.org, stored.project, stored.kind, stored.id, $6, coalesce(pattern.listed, true),
    stored.vector::vector
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[])
    AS stored (org, project, kind, id, vector)
LEFT JOIN workflow_pattern pattern
    ON stored.kind = 'capability' AND pattern.org = stored.org
    AND pattern.project = stored.project
    AND pattern.pattern_id = CASE WHEN stored.kind = 'capability' THEN stored.id::uuid END
WHERE NOT EXISTS (SELECT FROM embedding_models WHERE model = $6 AND state = 'retired')
ON CONFLICT (org, project, kind, id, model) DO UPDATE
SET listed = excluded.listed, embedding = excluded.embedding

-- name: delete-vectors
DELETE FROM search_vector found
USING unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS former (org, project, kind, id)
WHERE found.org = former.org AND found.project = former.project AND found.kind = former.kind
    AND found.id = former.id AND found.model = $5

-- name: prepare-vectors
SELECT prepare_vectors($1, $2)

-- name: nearest-vectors
SELECT id, cosine FROM nearest_vectors($1, $2, $3, $4, $5::real[]::vector, $6)

-- name: count-vectors
SELECT count(*) FROM search_vector WHERE model = $1

-- name: vector-keys
SELECT org, project, kind, id
FROM search_vector
WHERE model = $1 AND (org, project, kind, id) > ($2, $3, $4, $5)
ORDER BY org, project, kind, id
LIMIT $6

-- name: some-vectors-of
DELETE FROM search_vector
WHERE ctid = ANY (ARRAY(SELECT ctid FROM search_vector WHERE model = $1 LIMIT $2))

-- name: retired-vectors
DELETE FROM search_vector
WHERE ctid = ANY (ARRAY(SELECT ctid FROM search_vector WHERE model = $1 LIMIT $2))
    AND EXISTS (SELECT FROM embedding_models WHERE model = $1 AND state = 'retired')

-- name: discard-vectors
SELECT discard_vectors($1)

-- name: embedding-models
SELECT
    model, dimension, state, indexed,
    extract(epoch FROM now() - changed_at)::double precision AS for_s
FROM embedding_models
ORDER BY state DESC, model

-- name: lock-models
SELECT pg_advisory_xact_lock(hashtextextended('embedding-models', 0))

-- name: known-model
SELECT dimension, state FROM embedding_models WHERE model = $1

-- name: retire-models
-- Those in this state, but for one.
UPDATE embedding_models
SET state = 'retired', changed_at = now()
WHERE state = $1 AND model <> $2

-- name: begin-model
INSERT INTO embedding_models (model, dimension, state)
SELECT
    $1, $2,
    CASE WHEN EXISTS (SELECT FROM embedding_models WHERE state = 'serving')
        THEN 'preparing' ELSE 'serving' END
ON CONFLICT (model) DO UPDATE
SET state = excluded.state, indexed = false, changed_at = now()
WHERE embedding_models.state = 'retired'

-- name: serve-model
UPDATE embedding_models
SET state = 'serving', changed_at = now()
WHERE model = $1 AND state = 'preparing'

-- name: model-to-serve
SELECT indexed AND NOT EXISTS (SELECT FROM vector_outbox noted WHERE noted.model = $1)
FROM embedding_models
WHERE model = $1 AND state = 'preparing'

-- name: forget-model
DELETE FROM embedding_models WHERE model = $1 AND state = 'retired'

-- name: unembedded-tools
SELECT org, project, 'tool' AS kind, tool_id AS id, definition AS text, definition_hash AS revision
FROM tool_schema tool
WHERE (org, project, tool_id) > ($2, $3, $4)
    AND NOT EXISTS (
        SELECT
        FROM search_vector found
        WHERE found.org = tool.org AND found.project = tool.project AND found.kind = 'tool'
            AND found.id = tool.tool_id AND found.model = $1
    )
ORDER BY org, project, tool_id
LIMIT $5

-- name: unembedded-capabilities
SELECT
    org, project, 'capability' AS kind, pattern_id::text AS id, document AS text,
    md5(document) AS revision
FROM workflow_pattern pattern
WHERE (org, project, pattern_id) > ($2, $3, $4::uuid)
    AND NOT EXISTS (
        SELECT
        FROM search_vector found
        WHERE found.org = pattern.org AND found.project = pattern.project
            AND found.kind = 'capability' AND found.id = pattern.pattern_id::text
            AND found.model = $1
    )
ORDER BY org, project, pattern_id
LIMIT $5

-- name: hold-tools
-- Those whose text is still that one, until the transaction ends.
SELECT org, project, 'tool' AS kind, tool_id AS id
FROM tool_schema
JOIN unnest($1::text[], $2::text[], $3::text[], $4::text[])
    AS read (org, project, tool_id, definition_hash)
    USING (org, project, tool_id, definition_hash)
FOR SHARE OF tool_schema

-- name: hold-capabilities
SELECT pattern.org, pattern.project, 'capability' AS kind, pattern_id::text AS id
FROM workflow_pattern pattern
JOIN unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS read (org, project, id, revision)
    ON read.org = pattern.org AND read.project = pattern.project
    AND read.id::uuid = pattern.pattern_id AND read.revision = md5(pattern.document)
FOR SHARE OF pattern

-- name: still-followed
UPDATE external_index SET seen_at = now() WHERE kind = $1

-- name: abandon-index
DELETE FROM external_index WHERE seen_at < now() - make_interval(secs => $1)

-- name: abandoned-changes
DELETE FROM vector_outbox
WHERE NOT EXISTS (SELECT FROM external_index)
    AND sequence IN (SELECT sequence FROM vector_outbox ORDER BY sequence LIMIT $1)

-- name: forget-indexed
UPDATE embedding_models SET indexed = false

-- name: stop-writers
LOCK TABLE search_vector IN SHARE ROW EXCLUSIVE MODE

-- name: follow-vectors
INSERT INTO external_index (kind) VALUES ($1) ON CONFLICT DO NOTHING

-- name: take-embedding-turn
SELECT pg_try_advisory_xact_lock(hashtextextended('embedding', 0))

-- name: take-turn
SELECT pg_try_advisory_xact_lock(hashtextextended('vector-index', 0))

-- name: pending-changes
SELECT count(*) FROM (SELECT FROM vector_outbox LIMIT 1000) AS counted

-- name: noted-changes
SELECT
    noted.sequence, noted.model, noted.org, noted.project, noted.kind, noted.id,
    stored.embedding::text AS vector
FROM (
    SELECT max(sequence) AS sequence, model, org, project, kind, id
    FROM (SELECT * FROM vector_outbox ORDER BY sequence LIMIT $1) AS oldest
    GROUP BY model, org, project, kind, id
) AS noted
LEFT JOIN search_vector stored
    ON stored.org = noted.org AND stored.project = noted.project AND stored.kind = noted.kind
    AND stored.id = noted.id AND stored.model = noted.model AND stored.listed
ORDER BY noted.sequence

-- name: forget-changes
-- Changes of one key are numbered in the order of their transactions, which lock its row.
DELETE FROM vector_outbox noted
USING unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
    AS done (sequence, model, org, project, kind, id)
WHERE noted.sequence <= done.sequence AND noted.model = done.model AND noted.org = done.org
    AND noted.project = done.project AND noted.kind = done.kind AND noted.id = done.id

-- name: set-indexed
UPDATE embedding_models SET indexed = $2 WHERE model = $1 AND indexed <> $2

-- name: listed-vectors
SELECT org, project, kind, id, embedding::text AS vector
FROM search_vector
WHERE model = $1 AND listed AND (org, project, kind, id) > ($2, $3, $4, $5)
ORDER BY org, project, kind, id
LIMIT $6

-- name: keys-without-vector
SELECT checked.org, checked.project, checked.kind, checked.id
FROM unnest($2::text[], $3::text[], $4::text[], $5::text[])
    AS checked (org, project, kind, id)
WHERE NOT EXISTS (
    SELECT
    FROM search_vector found
    WHERE found.org = checked.org AND found.project = checked.project
        AND found.kind = checked.kind AND found.id = checked.id AND found.model = $1
        AND found.listed
)

-- name: count-listed-vectors
SELECT count(*) FROM search_vector WHERE model = $1 AND listed

-- name: last-reindex
SELECT * FROM reindex_run

-- name: begin-reindex
INSERT INTO reindex_run (run_id, state, requested_by, position)
VALUES ($1, 'running', $2, '{}')
ON CONFLICT (single) DO UPDATE
SET run_id = excluded.run_id, state = 'running', requested_by = excluded.requested_by,
    total = 0, stored = 0, removed = 0, problem = NULL, position = '{}', began_at = now(),
    changed_at = now()
WHERE reindex_run.state <> 'running'

-- name: save-reindex
UPDATE reindex_run
SET state = $2, total = $3, stored = $4, removed = $5, problem = $6, position = $7,
    changed_at = now()
WHERE run_id = $1
