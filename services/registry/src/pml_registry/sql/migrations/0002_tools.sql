-- When each MCP server last listed its tools; its row is locked while they change.
CREATE TABLE tool_server (
    org text NOT NULL,
    project text NOT NULL,
    server text NOT NULL,
    listed_at timestamptz,
    PRIMARY KEY (org, project, server)
);

CREATE TABLE tool_schema (
    org text NOT NULL,
    project text NOT NULL,
    server text NOT NULL,
    name text NOT NULL,
    tool_id text NOT NULL GENERATED ALWAYS AS (server || ':' || name) STORED,
    definition json NOT NULL,
    definition_hash text NOT NULL,
    document text NOT NULL,
    words tsvector NOT NULL GENERATED ALWAYS AS (to_tsvector('english', document)) STORED,
    embedding vector(384) NOT NULL,
    embedding_model text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (org, project, tool_id),
    FOREIGN KEY (org, project, server) REFERENCES tool_server (org, project, server)
);

CREATE INDEX tool_schema_server ON tool_schema (org, project, server);
CREATE INDEX tool_schema_words ON tool_schema USING gin (words);
CREATE INDEX tool_schema_embedding ON tool_schema USING hnsw (embedding vector_cosine_ops);

CREATE TABLE tool_dependency (
    org text NOT NULL,
    project text NOT NULL,
    from_tool_id text NOT NULL,
    to_tool_id text NOT NULL,
    edge_type text NOT NULL CHECK (edge_type IN ('contains', 'sequence', 'dependency', 'provides')),
    edge_source text NOT NULL CHECK (edge_source IN ('template', 'inferred', 'observed')),
    observed_count integer NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    last_observed timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (org, project, from_tool_id, to_tool_id, edge_type),
    CHECK (from_tool_id <> to_tool_id)
);

CREATE INDEX tool_dependency_to ON tool_dependency (org, project, to_tool_id);
