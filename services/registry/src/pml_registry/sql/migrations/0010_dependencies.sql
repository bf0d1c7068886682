-- Relations between behaviours. Those of a record are those of its latest version's behaviour.
CREATE TABLE capability_dependency (
    org text NOT NULL,
    project text NOT NULL,
    from_capability_id uuid NOT NULL,
    to_capability_id uuid NOT NULL,
    edge_type text NOT NULL
        CHECK (edge_type IN ('contains', 'sequence', 'dependency', 'alternative')),
    edge_source text NOT NULL CHECK (edge_source IN ('template', 'inferred', 'observed')),
    -- Runs that showed it.
    observed_count integer NOT NULL CHECK (observed_count >= 0),
    confidence_score double precision NOT NULL CHECK (confidence_score BETWEEN 0 AND 1),
    created_at timestamptz NOT NULL DEFAULT now(),
    last_observed timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (org, project, from_capability_id, to_capability_id, edge_type),
    FOREIGN KEY (org, project, from_capability_id)
        REFERENCES workflow_pattern (org, project, pattern_id) ON DELETE CASCADE,
    FOREIGN KEY (org, project, to_capability_id)
        REFERENCES workflow_pattern (org, project, pattern_id) ON DELETE CASCADE,
    CHECK (from_capability_id <> to_capability_id)
);

CREATE INDEX capability_dependency_to
    ON capability_dependency (org, project, to_capability_id);

-- Capabilities that share a tool with another.
CREATE INDEX workflow_pattern_tools ON workflow_pattern USING gin (tools_used);

-- Provides edges, computed from schemas: which fields of the one feed which of the other.
ALTER TABLE tool_dependency
    ADD COLUMN coverage text CHECK (coverage IN ('strict', 'partial', 'optional')),
    ADD COLUMN field_mapping json;

-- The definition that a tool's provides edges were computed from.
ALTER TABLE tool_schema ADD COLUMN provides_hash text;

CREATE INDEX tool_schema_provides
    ON tool_schema (org, project)
    WHERE provides_hash IS DISTINCT FROM definition_hash;

-- The name under which a principal sees a behaviour: that of the record that stands for it. NULL
-- where all its records are private to others; the id of one without records. Without a principal
-- a service asks, and sees all.
CREATE FUNCTION shown_name(of_org text, of_project text, of_behaviour uuid, to_principal text)
RETURNS text
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT coalesce(
        (
            SELECT record.name
            FROM capability_versions version
            JOIN capability_records record USING (org, project, record_id)
            WHERE org = of_org AND project = of_project AND version.pattern_id = of_behaviour
                AND (
                    to_principal IS NULL
                    OR record.visibility <> 'private'
                    OR record.owner = to_principal
                )
            ORDER BY record.namespace IS NULL, record.named_at, record_id
            LIMIT 1
        ),
        CASE
            WHEN NOT EXISTS (
                SELECT
                FROM capability_versions version
                WHERE version.org = of_org AND version.project = of_project
                    AND version.pattern_id = of_behaviour
            )
            THEN of_behaviour::text
        END
    );
END;
