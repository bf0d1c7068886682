-- The shape of a program: the hash of its normal form without literals. NULL in rows from before,
-- until the registry has read their code.
ALTER TABLE workflow_pattern
    ADD COLUMN shape_hash text,
    ADD COLUMN makes_calls boolean;

CREATE INDEX workflow_pattern_shape ON workflow_pattern (org, project, shape_hash);
CREATE INDEX workflow_pattern_unread ON workflow_pattern (org, project, pattern_id)
    WHERE shape_hash IS NULL;

-- Of all behaviours of one shape the one that is offered: programs that differ from it by literals
-- alone are listed under a name of their own only. Its key decides between concurrent listings.
CREATE TABLE offered_shapes (
    org text NOT NULL,
    project text NOT NULL,
    shape_hash text NOT NULL,
    pattern_id uuid NOT NULL,
    PRIMARY KEY (org, project, shape_hash),
    FOREIGN KEY (org, project, pattern_id)
        REFERENCES workflow_pattern (org, project, pattern_id) ON DELETE CASCADE
);

CREATE INDEX offered_shapes_pattern ON offered_shapes (org, project, pattern_id);

-- Whatever lists a behaviour offers its shape, unless another does.
CREATE FUNCTION offer_shape() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO offered_shapes (org, project, shape_hash, pattern_id)
    VALUES (NEW.org, NEW.project, NEW.shape_hash, NEW.pattern_id)
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END
$$;

CREATE TRIGGER workflow_pattern_offered
AFTER INSERT OR UPDATE OF listed, shape_hash ON workflow_pattern
FOR EACH ROW
WHEN (NEW.listed AND NEW.shape_hash IS NOT NULL)
EXECUTE FUNCTION offer_shape();

-- Names suggested for capabilities that have none; reasons: a list of texts.
CREATE TABLE curation_suggestions (
    org text NOT NULL,
    project text NOT NULL,
    pattern_id uuid NOT NULL,
    name text NOT NULL,
    confidence double precision NOT NULL,
    reasons text[] NOT NULL,
    source text NOT NULL CHECK (source IN ('rules', 'model')),
    suggested_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (org, project, pattern_id),
    FOREIGN KEY (org, project, pattern_id)
        REFERENCES workflow_pattern (org, project, pattern_id) ON DELETE CASCADE
);

-- Scopes for which a replica looks for names at present; others leave them to it until then.
CREATE TABLE curation_claims (
    org text NOT NULL,
    project text NOT NULL,
    claimed_until timestamptz NOT NULL,
    PRIMARY KEY (org, project)
);

CREATE INDEX capability_records_unnamed ON capability_records (org, project)
    WHERE namespace IS NULL;
