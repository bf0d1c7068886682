-- Edges fade while no run shows them, and the runs of one cohort of principals count only so much.
-- shares: [cohort, strength at last_observed, hour of its last run, runs counted in that hour].
-- base_source: what the edge is without runs; NULL where runs alone show it.
ALTER TABLE capability_dependency
    ADD COLUMN shares json NOT NULL DEFAULT '[]',
    ADD COLUMN base_source text CHECK (base_source IN ('template', 'inferred')),
    ADD COLUMN base_confidence double precision NOT NULL DEFAULT 0
        CHECK (base_confidence BETWEEN 0 AND 1),
    ADD COLUMN looked_at timestamptz NOT NULL DEFAULT now();

ALTER TABLE tool_dependency
    ADD COLUMN shares json NOT NULL DEFAULT '[]',
    ADD COLUMN looked_at timestamptz NOT NULL DEFAULT now();

-- Of rows from before it is not known whether a person stated what runs showed later, nor whose runs
-- they were: they stay, and count as those of one cohort.
UPDATE capability_dependency
SET base_source = CASE edge_source WHEN 'template' THEN 'template' ELSE 'inferred' END,
    base_confidence = CASE observed_count WHEN 0 THEN confidence_score ELSE 0.5 END,
    shares = CASE observed_count
        WHEN 0 THEN '[]'
        ELSE json_build_array(json_build_array(0, least(observed_count, 20), 0, 0))
    END;

UPDATE tool_dependency
SET shares = json_build_array(json_build_array(0, least(observed_count, 20), 0, 0))
WHERE observed_count > 0;

-- What a capability calls, and what its callers call before and after it, where the other is a tool.
-- Ends are named as in the graph.
CREATE TABLE capability_tool_edge (
    org text NOT NULL,
    project text NOT NULL,
    from_node text NOT NULL,
    to_node text NOT NULL,
    edge_type text NOT NULL CHECK (edge_type IN ('contains', 'sequence')),
    capability_id uuid NOT NULL GENERATED ALWAYS AS (
        CASE WHEN strpos(from_node, ':') = 0 THEN from_node::uuid ELSE to_node::uuid END
    ) STORED,
    edge_source text NOT NULL CHECK (edge_source IN ('inferred', 'observed')),
    observed_count integer NOT NULL CHECK (observed_count >= 0),
    confidence_score double precision NOT NULL CHECK (confidence_score BETWEEN 0 AND 1),
    shares json NOT NULL DEFAULT '[]',
    created_at timestamptz NOT NULL DEFAULT now(),
    last_observed timestamptz NOT NULL DEFAULT now(),
    looked_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (org, project, from_node, to_node, edge_type),
    FOREIGN KEY (org, project, capability_id)
        REFERENCES workflow_pattern (org, project, pattern_id) ON DELETE CASCADE,
    CHECK (from_node <> to_node)
);

CREATE INDEX capability_tool_edge_capability
    ON capability_tool_edge (org, project, capability_id);
SELECT protect('capability_tool_edge');

-- The next to be looked at for how far they have faded.
CREATE INDEX capability_dependency_fading
    ON capability_dependency (looked_at) WHERE observed_count > 0;
CREATE INDEX tool_dependency_fading ON tool_dependency (looked_at) WHERE observed_count > 0;
CREATE INDEX capability_tool_edge_fading ON capability_tool_edge (looked_at);
