-- A candidate is read with few look-ups: whether it is found stands in its own row, and candidates
-- come from one function, whose plan is kept.

-- Owners of private records that have the behaviour as their latest version: found by them alone.
-- null: found by everyone in the scope, since another record has it so; empty: no record has.
ALTER TABLE workflow_pattern ADD COLUMN found_by text[] DEFAULT '{}';

CREATE FUNCTION finders(of_org text, of_project text, of_behaviour uuid) RETURNS text[]
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT CASE
        WHEN bool_or(record.visibility <> 'private') THEN NULL
        ELSE coalesce(array_agg(DISTINCT record.owner), '{}')
    END
    FROM capability_versions version
    JOIN capability_records record USING (org, project, record_id)
    WHERE org = of_org AND project = of_project AND version.pattern_id = of_behaviour
        AND version.number = record.latest;
END;

-- Locked before it is computed: the second statement sees what a concurrent change has committed.
CREATE FUNCTION set_finders(of_org text, of_project text, behaviours uuid[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM workflow_pattern
    WHERE org = of_org AND project = of_project AND pattern_id = ANY (behaviours)
    ORDER BY pattern_id
    FOR NO KEY UPDATE;
    UPDATE workflow_pattern
    SET found_by = finders(org, project, pattern_id)
    WHERE org = of_org AND project = of_project AND pattern_id = ANY (behaviours)
        AND found_by IS DISTINCT FROM finders(org, project, pattern_id);
END
$$;

CREATE FUNCTION find_version() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    changed capability_versions := CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
BEGIN
    PERFORM set_finders(changed.org, changed.project, ARRAY[changed.pattern_id]);
    RETURN NULL;
END
$$;

CREATE FUNCTION find_record() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_finders(NEW.org, NEW.project, ARRAY(
        SELECT pattern_id
        FROM capability_versions
        WHERE org = NEW.org AND project = NEW.project AND record_id = NEW.record_id
            AND number IN (OLD.latest, NEW.latest)
    ));
    RETURN NULL;
END
$$;

CREATE TRIGGER version_found AFTER INSERT OR DELETE ON capability_versions
    FOR EACH ROW EXECUTE FUNCTION find_version();
CREATE TRIGGER record_found AFTER UPDATE OF latest, visibility, owner ON capability_records
    FOR EACH ROW
    WHEN ((OLD.latest, OLD.visibility, OLD.owner) IS DISTINCT FROM
        (NEW.latest, NEW.visibility, NEW.owner))
    EXECUTE FUNCTION find_record();

UPDATE workflow_pattern SET found_by = finders(org, project, pattern_id);

-- The nearest, and those that share most words with each part (the part's limit of them at most):
-- their cosines with the parts, 0 without a vector of the model. terms are distinct; numbers (from 1)
-- and of_parts say which part has which term; of a term the heaviest are read, at_most of them.
-- vectors are the parts', one after the other; known are cosines of the nearest, or nulls.
CREATE FUNCTION search_candidates(
    of_org text, of_project text, of_kind text, nearest text[], known double precision[],
    terms text[], numbers integer[], of_parts text[], limits integer[], at_most integer,
    of_model text, vectors real[]
)
RETURNS TABLE (id text, cosines double precision[])
LANGUAGE plpgsql STABLE ROWS 100
SET plan_cache_mode = 'force_generic_plan'
AS $$
DECLARE
    dimension integer := cardinality(vectors) / cardinality(limits);
    asked vector[] := ARRAY(
        SELECT vectors[(part - 1) * dimension + 1 : part * dimension]::vector
        FROM generate_series(1, cardinality(limits)) AS part
        ORDER BY part
    );
BEGIN
    RETURN QUERY
    WITH posting AS MATERIALIZED (
        SELECT asked_term.term, heaviest.id, heaviest.weight
        FROM unnest(terms) AS asked_term (term)
        CROSS JOIN LATERAL (
            SELECT found.id, found.weight
            FROM search_term found
            WHERE found.org = of_org AND found.project = of_project AND found.kind = of_kind
                AND found.term = asked_term.term
            ORDER BY found.weight DESC, found.id DESC
            LIMIT at_most
        ) AS heaviest
    ), worded AS (
        SELECT best.id
        FROM unnest(limits) WITH ORDINALITY AS part (wanted, number)
        CROSS JOIN LATERAL (
            SELECT posting.id
            FROM unnest(numbers, of_parts) AS having_term (number, term)
            JOIN posting USING (term)
            WHERE having_term.number = part.number
            GROUP BY posting.id
            ORDER BY sum(posting.weight) DESC, posting.id
            LIMIT part.wanted
        ) AS best
    ), candidate AS (
        SELECT either.id, max(either.cosine) AS cosine
        FROM (
            SELECT * FROM unnest(nearest, known)
            UNION ALL
            SELECT worded.id, NULL FROM worded
        ) AS either (id, cosine)
        GROUP BY either.id
    )
    SELECT
        candidate.id,
        CASE
            WHEN candidate.cosine IS NOT NULL THEN ARRAY[candidate.cosine]
            ELSE coalesce(
                (
                    SELECT ARRAY(
                        SELECT 1 - (stored.embedding <=> part.vector)
                        FROM unnest(asked) WITH ORDINALITY AS part (vector, place)
                        ORDER BY part.place
                    )
                    FROM search_vector stored
                    WHERE stored.org = of_org AND stored.project = of_project
                        AND stored.kind = of_kind AND stored.id = candidate.id
                        AND stored.model = of_model
                ),
                array_fill(0.0::double precision, ARRAY[cardinality(limits)])
            )
        END
    FROM candidate;
END
$$;
