-- Which tools and capabilities served which intents: of each principal and intent the last use. The
-- principal is a hash; nothing but the intent's text tells of its workflow.
CREATE TABLE intent_evidence (
    org text NOT NULL,
    project text NOT NULL,
    use_id uuid NOT NULL,
    sequence bigint NOT NULL,
    workflow_id uuid NOT NULL,
    principal text NOT NULL,
    intent text NOT NULL,
    tools text[] NOT NULL,
    capabilities text[] NOT NULL,
    hour integer NOT NULL,
    model text NOT NULL,
    embedding bytea NOT NULL,
    ndcg_without real,
    recall_without real,
    ndcg_with real,
    recall_with real,
    PRIMARY KEY (org, project, use_id),
    CHECK (num_nulls(ndcg_without, recall_without, ndcg_with, recall_with) IN (0, 4))
);

COMMENT ON COLUMN intent_evidence.hour IS 'since 1970';
COMMENT ON COLUMN intent_evidence.embedding IS 'of the intent: 32-bit floats, little-endian; read as
a whole into memory, hence no vector';
COMMENT ON COLUMN intent_evidence.ndcg_without IS 'of its ranking before it was stored, if ranked';

CREATE INDEX idx_intent_evidence_sequence ON intent_evidence (org, project, sequence);
CREATE INDEX idx_intent_evidence_workflow ON intent_evidence (org, project, workflow_id);
CREATE INDEX idx_intent_evidence_model ON intent_evidence (model);

-- Whether rankings of a scope use its evidence, and how it was judged last.
CREATE TABLE intent_evidence_state (
    org text NOT NULL,
    project text NOT NULL,
    sequence bigint NOT NULL DEFAULT 0,
    reset bigint NOT NULL DEFAULT 0,
    used boolean NOT NULL DEFAULT false,
    standing json NOT NULL DEFAULT '{}',
    PRIMARY KEY (org, project)
);

COMMENT ON COLUMN intent_evidence_state.sequence IS 'of the last use';
COMMENT ON COLUMN intent_evidence_state.reset IS 'grows when uses are removed or weigh otherwise';

-- Opinions of runs, by their weights; they may come before the run's use.
CREATE TABLE intent_opinion (
    org text NOT NULL,
    project text NOT NULL,
    workflow_id uuid NOT NULL,
    useful real NOT NULL,
    not_useful real NOT NULL,
    judged_at double precision NOT NULL,
    PRIMARY KEY (org, project, workflow_id)
);

CREATE INDEX idx_intent_opinion_age ON intent_opinion (org, project, judged_at);

-- Workflows whose data was deleted: uses of them that come later are not kept.
CREATE TABLE deleted_workflow (
    org text NOT NULL,
    project text NOT NULL,
    workflow_id uuid NOT NULL,
    deleted_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (org, project, workflow_id)
);

SELECT protect(relation)
FROM unnest(ARRAY[
    'intent_evidence', 'intent_evidence_state', 'intent_opinion', 'deleted_workflow'
]::regclass[]) AS relation;
