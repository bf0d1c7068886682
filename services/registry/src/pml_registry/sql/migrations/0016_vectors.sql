-- Vectors apart from the rows that they are of: a model's name and dimension are data.
CREATE TABLE embedding_models (
    model text PRIMARY KEY,
    dimension integer NOT NULL CHECK (dimension > 0),
    -- preparing: its vectors are being computed, while another serves. retired: about to be dropped.
    state text NOT NULL CHECK (state IN ('serving', 'preparing', 'retired')),
    -- Whether the external index, if there is one, has had all of its vectors.
    indexed boolean NOT NULL DEFAULT false,
    changed_at timestamptz NOT NULL DEFAULT now()
);

CREATE UNIQUE INDEX embedding_models_active ON embedding_models (state) WHERE state <> 'retired';

-- One row for each tool or behaviour and model. Kept equal to these by triggers, as search_term is;
-- listed: whether it is found (tools always are).
CREATE TABLE search_vector (
    org text NOT NULL,
    project text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('tool', 'capability')),
    id text NOT NULL,
    model text NOT NULL,
    listed boolean NOT NULL DEFAULT true,
    embedding vector NOT NULL,
    PRIMARY KEY (org, project, kind, id, model)
)
-- A vector of up to two thousand numbers stays in its row.
WITH (toast_tuple_target = 8160);

-- Type of the indexed expression: halfvec where vector cannot be indexed; NULL: neither can.
CREATE FUNCTION indexed_type(dimension integer) RETURNS text
LANGUAGE sql IMMUTABLE
BEGIN ATOMIC
    SELECT CASE
        WHEN dimension <= 2000 THEN format('vector(%s)', dimension)
        WHEN dimension <= 4000 THEN format('halfvec(%s)', dimension)
    END;
END;

-- Indexes are named after a model's hash. By the owner of the table, whoever begins a model.
CREATE FUNCTION prepare_vectors(of_model text, of_dimension integer) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    indexed text := indexed_type(of_dimension);
    of_kind text;
BEGIN
    IF to_regclass('search_vector_tool_' || left(md5(of_model), 12)) IS NOT NULL THEN
        RETURN false;
    END IF;
    IF indexed IS NULL THEN
        RETURN true;
    END IF;
    FOREACH of_kind IN ARRAY ARRAY['tool', 'capability'] LOOP
        EXECUTE format(
            'CREATE INDEX %I ON search_vector USING hnsw ((embedding::%s) %s) '
            'WHERE model = %L AND kind = %L AND listed',
            format('search_vector_%s_%s', of_kind, left(md5(of_model), 12)), indexed,
            split_part(indexed, '(', 1) || '_cosine_ops', of_model, of_kind
        );
    END LOOP;
    RETURN true;
END
$$;

CREATE FUNCTION discard_vectors(of_model text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    EXECUTE format('DROP INDEX IF EXISTS %I', 'search_vector_tool_' || left(md5(of_model), 12));
    EXECUTE format(
        'DROP INDEX IF EXISTS %I', 'search_vector_capability_' || left(md5(of_model), 12)
    );
END
$$;

-- Nearest by meaning: the index looks at 100 candidates and goes on until enough of them belong to
-- the scope, nearest first. Planned for each model, whose name and dimension choose the index.
CREATE FUNCTION nearest_vectors(
    of_org text, of_project text, of_kind text, of_model text, wanted vector, at_most integer
)
RETURNS TABLE (id text, cosine double precision)
LANGUAGE plpgsql STABLE
SET hnsw.ef_search = 100
SET hnsw.iterative_scan = 'strict_order'
AS $$
DECLARE
    indexed text := coalesce(indexed_type(vector_dims(wanted)), 'vector');
BEGIN
    RETURN QUERY EXECUTE format(
        'SELECT id, 1 - (embedding <=> $3) FROM search_vector '
        'WHERE org = $1 AND project = $2 AND kind = %L AND model = %L AND listed '
        'ORDER BY embedding::%s <=> $3::%3$s LIMIT $4',
        of_kind, of_model, indexed
    ) USING of_org, of_project, wanted, at_most;
END
$$;

-- Changes that an external index has not had yet; written only while there is one, as the
-- registries that use it say from time to time.
CREATE TABLE external_index (
    kind text PRIMARY KEY,
    seen_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE vector_outbox (
    sequence bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    org text NOT NULL,
    project text NOT NULL,
    kind text NOT NULL,
    id text NOT NULL,
    model text NOT NULL
);

CREATE FUNCTION note_vector() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    changed search_vector := CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
BEGIN
    INSERT INTO vector_outbox (org, project, kind, id, model)
    SELECT changed.org, changed.project, changed.kind, changed.id, changed.model
    WHERE EXISTS (SELECT FROM external_index)
        AND NOT EXISTS (
            SELECT FROM embedding_models former
            WHERE former.model = changed.model AND former.state = 'retired'
        );
    RETURN NULL;
END
$$;

CREATE TRIGGER search_vector_noted AFTER INSERT OR DELETE OR UPDATE ON search_vector
    FOR EACH ROW EXECUTE FUNCTION note_vector();

-- A vector of another text is none: the store, or what embeds in the background, writes the new one.
CREATE FUNCTION forget_tool_vectors() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM search_vector
    WHERE org = OLD.org AND project = OLD.project AND kind = 'tool' AND id = OLD.tool_id;
    RETURN NULL;
END
$$;

CREATE FUNCTION forget_capability_vectors() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM search_vector
    WHERE org = OLD.org AND project = OLD.project AND kind = 'capability'
        AND id = OLD.pattern_id::text;
    RETURN NULL;
END
$$;

CREATE FUNCTION list_capability_vectors() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE search_vector
    SET listed = NEW.listed
    WHERE org = NEW.org AND project = NEW.project AND kind = 'capability'
        AND id = NEW.pattern_id::text AND listed <> NEW.listed;
    RETURN NULL;
END
$$;

-- The model that most vectors are of serves; what has none of it is embedded in the background.
INSERT INTO embedding_models (model, dimension, state)
SELECT embedding_model, 384, 'serving'
FROM (
    SELECT embedding_model FROM workflow_pattern
    UNION ALL
    SELECT embedding_model FROM tool_schema
) AS stored
GROUP BY embedding_model
ORDER BY count(*) DESC, embedding_model
LIMIT 1;

INSERT INTO search_vector (org, project, kind, id, model, listed, embedding)
SELECT org, project, 'tool', tool_id, embedding_model, true, embedding
FROM tool_schema
JOIN embedding_models ON model = embedding_model;

INSERT INTO search_vector (org, project, kind, id, model, listed, embedding)
SELECT org, project, 'capability', pattern_id::text, embedding_model, listed, embedding
FROM workflow_pattern
JOIN embedding_models ON model = embedding_model;

SELECT prepare_vectors(model, dimension) FROM embedding_models;

DROP FUNCTION nearest_tools;
DROP FUNCTION nearest_capabilities;
ALTER TABLE tool_schema DROP COLUMN embedding, DROP COLUMN embedding_model;
ALTER TABLE workflow_pattern DROP COLUMN embedding, DROP COLUMN embedding_model;

CREATE TRIGGER tool_vectors_removed AFTER DELETE ON tool_schema
    FOR EACH ROW EXECUTE FUNCTION forget_tool_vectors();
CREATE TRIGGER tool_vectors_outdated AFTER UPDATE OF definition_hash ON tool_schema
    FOR EACH ROW WHEN (OLD.definition_hash <> NEW.definition_hash)
    EXECUTE FUNCTION forget_tool_vectors();
CREATE TRIGGER capability_vectors_removed AFTER DELETE ON workflow_pattern
    FOR EACH ROW EXECUTE FUNCTION forget_capability_vectors();
CREATE TRIGGER capability_vectors_outdated AFTER UPDATE OF document ON workflow_pattern
    FOR EACH ROW WHEN (OLD.document <> NEW.document)
    EXECUTE FUNCTION forget_capability_vectors();
CREATE TRIGGER capability_vectors_listed AFTER UPDATE OF listed ON workflow_pattern
    FOR EACH ROW WHEN (OLD.listed <> NEW.listed)
    EXECUTE FUNCTION list_capability_vectors();

-- The last rebuild of the external index. position: where it is in the order of its keys (JSON).
CREATE TABLE reindex_run (
    single boolean PRIMARY KEY DEFAULT true CHECK (single),
    run_id uuid NOT NULL,
    state text NOT NULL CHECK (state IN ('running', 'done')),
    requested_by text NOT NULL,
    total integer NOT NULL DEFAULT 0,
    stored integer NOT NULL DEFAULT 0,
    removed integer NOT NULL DEFAULT 0,
    problem text,
    position json NOT NULL,
    began_at timestamptz NOT NULL DEFAULT now(),
    changed_at timestamptz NOT NULL DEFAULT now()
);
