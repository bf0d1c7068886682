-- name: meet-evidence
INSERT INTO intent_evidence_state (org, project) VALUES ($1, $2) ON CONFLICT DO NOTHING

-- name: lock-evidence
SELECT sequence, reset, standing
FROM intent_evidence_state
WHERE org = $1 AND project = $2
FOR UPDATE

-- name: evidence-stand
SELECT sequence, reset, standing
FROM intent_evidence_state
WHERE org = $1 AND project = $2

-- name: save-use
-- Nothing where the workflow's data was deleted.
INSERT INTO intent_evidence (
    org, project, use_id, sequence, workflow_id, principal, intent, tools, capabilities, hour, model,
    embedding, ndcg_without, recall_without, ndcg_with, recall_with
)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16
WHERE NOT EXISTS (
    SELECT FROM deleted_workflow WHERE org = $1 AND project = $2 AND workflow_id = $5
)
ON CONFLICT (org, project, use_id) DO UPDATE
SET sequence = excluded.sequence, workflow_id = excluded.workflow_id, tools = excluded.tools,
    capabilities = excluded.capabilities, hour = excluded.hour, model = excluded.model,
    embedding = excluded.embedding, ndcg_without = excluded.ndcg_without,
    recall_without = excluded.recall_without, ndcg_with = excluded.ndcg_with,
    recall_with = excluded.recall_with

-- name: evidence-trials
SELECT principal, sequence, ndcg_without, recall_without, ndcg_with, recall_with
FROM intent_evidence
WHERE org = $1 AND project = $2
ORDER BY sequence DESC

-- name: drop-uses
DELETE FROM intent_evidence WHERE org = $1 AND project = $2 AND sequence = ANY ($3)

-- name: save-evidence
UPDATE intent_evidence_state
SET sequence = $3, reset = $4, used = $5, standing = $6
WHERE org = $1 AND project = $2

-- name: evidence-uses
SELECT
    use_id, sequence, principal, intent, tools, capabilities, hour, model, embedding,
    ndcg_with IS NOT NULL AS measured,
    coalesce(opinion.useful, 0) AS useful, coalesce(opinion.not_useful, 0) AS not_useful
FROM intent_evidence evidence
LEFT JOIN intent_opinion opinion USING (org, project, workflow_id)
WHERE evidence.org = $1 AND evidence.project = $2 AND sequence > $3
ORDER BY sequence

-- name: save-opinion
INSERT INTO intent_opinion (org, project, workflow_id, useful, not_useful, judged_at)
SELECT $1, $2, $3, $4, $5, $6
WHERE NOT EXISTS (
    SELECT FROM deleted_workflow WHERE org = $1 AND project = $2 AND workflow_id = $3
)
ON CONFLICT (org, project, workflow_id) DO UPDATE
SET useful = excluded.useful, not_useful = excluded.not_useful, judged_at = excluded.judged_at
WHERE intent_opinion.judged_at < excluded.judged_at

-- name: drop-opinions
DELETE FROM intent_opinion
WHERE org = $1 AND project = $2 AND judged_at < (
    SELECT judged_at
    FROM intent_opinion
    WHERE org = $1 AND project = $2
    ORDER BY judged_at DESC
    OFFSET $3
    LIMIT 1
)

-- name: reset-evidence
UPDATE intent_evidence_state SET reset = reset + 1 WHERE org = $1 AND project = $2

-- name: note-deleted-workflow
INSERT INTO deleted_workflow (org, project, workflow_id) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING

-- name: erase-use
DELETE FROM intent_evidence WHERE org = $1 AND project = $2 AND workflow_id = $3

-- name: erase-opinion
DELETE FROM intent_opinion WHERE org = $1 AND project = $2 AND workflow_id = $3

-- name: outdated-uses
SELECT
    org, project, use_id, sequence, principal, intent, tools, capabilities, hour, model, embedding,
    ndcg_with IS NOT NULL AS measured, 0::real AS useful, 0::real AS not_useful
FROM intent_evidence
WHERE model <> $1
LIMIT $2

-- name: embed-use
UPDATE intent_evidence
SET model = $5, embedding = $6
WHERE org = $1 AND project = $2 AND use_id = $3 AND sequence = $4
