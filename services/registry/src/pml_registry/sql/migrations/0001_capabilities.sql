CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public;

-- Behaviour: what a capability is and how it fared. pattern_id is the capability's id.
CREATE TABLE workflow_pattern (
    org text NOT NULL,
    project text NOT NULL,
    pattern_id uuid NOT NULL,
    code text NOT NULL,
    code_hash text NOT NULL,
    -- json, not jsonb, wherever a value of a program is kept: only json can hold \u0000.
    structure json NOT NULL,
    parameters_schema json NOT NULL,
    description text NOT NULL,
    tools_used text[] NOT NULL,
    listed boolean NOT NULL DEFAULT false,
    usage_count integer NOT NULL DEFAULT 0,
    success_count integer NOT NULL DEFAULT 0,
    mean_duration_ms double precision NOT NULL DEFAULT 0,
    learning json NOT NULL DEFAULT '{}',
    learning_revision integer NOT NULL DEFAULT 0,
    -- What it is found by: one text for meaning and for words.
    document text NOT NULL,
    words tsvector NOT NULL GENERATED ALWAYS AS (to_tsvector('english', document)) STORED,
    embedding vector(384) NOT NULL,
    embedding_model text NOT NULL,
    created_by text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (org, project, pattern_id),
    UNIQUE (org, project, code_hash)
);

CREATE INDEX workflow_pattern_usage ON workflow_pattern (org, project, usage_count DESC);
CREATE INDEX workflow_pattern_words ON workflow_pattern USING gin (words);
CREATE INDEX workflow_pattern_embedding
    ON workflow_pattern USING hnsw (embedding vector_cosine_ops);

-- The name a capability goes by: `namespace:action`, or `unnamed_<hash>` without those two.
CREATE TABLE capability_records (
    org text NOT NULL,
    project text NOT NULL,
    name text NOT NULL,
    namespace text,
    action text,
    hash text NOT NULL,
    pattern_id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (org, project, name),
    UNIQUE (org, project, pattern_id),
    FOREIGN KEY (org, project, pattern_id)
        REFERENCES workflow_pattern (org, project, pattern_id) ON DELETE CASCADE,
    CHECK ((namespace IS NULL) = (action IS NULL))
);

-- Names it went by before; they lead to it for ever.
CREATE TABLE capability_aliases (
    org text NOT NULL,
    project text NOT NULL,
    alias text NOT NULL,
    pattern_id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (org, project, alias),
    FOREIGN KEY (org, project, pattern_id)
        REFERENCES workflow_pattern (org, project, pattern_id) ON DELETE CASCADE
);

-- A capability as it is told: behaviour under its name.
CREATE VIEW capability AS
SELECT
    org, project, pattern_id, record.name, record.namespace IS NOT NULL AS named, pattern.listed,
    pattern.code, pattern.code_hash, pattern.description, pattern.parameters_schema,
    pattern.structure, pattern.tools_used, pattern.usage_count, pattern.success_count,
    pattern.mean_duration_ms, pattern.learning, pattern.learning_revision, pattern.created_by,
    pattern.created_at, pattern.updated_at
FROM workflow_pattern pattern
JOIN capability_records record USING (org, project, pattern_id);
