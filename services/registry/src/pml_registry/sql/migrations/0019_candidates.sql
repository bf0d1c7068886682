-- A candidate is read with few look-ups: whether it is found stands in its own row, and its ids by
-- words come from a function, whose plan is kept.

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

-- Ids of those that share most words with each part, and the part's limit of them at most: terms
-- are distinct; numbers (from 1) and of_parts say which part has which term; of a term the heaviest
-- are read, at_most of them.
CREATE FUNCTION worded(
    of_org text, of_project text, of_kind text, terms text[], numbers integer[], of_parts text[],
    limits integer[], at_most integer
)
RETURNS text[]
LANGUAGE plpgsql STABLE
SET plan_cache_mode = 'force_generic_plan'
AS $$
BEGIN
    RETURN ARRAY(
        WITH posting AS MATERIALIZED (
            SELECT asked.term, heaviest.id, heaviest.weight
            FROM unnest(terms) AS asked (term)
            CROSS JOIN LATERAL (
                SELECT found.id, found.weight
                FROM search_term found
                WHERE found.org = of_org AND found.project = of_project AND found.kind = of_kind
                    AND found.term = asked.term
                ORDER BY found.weight DESC, found.id DESC
                LIMIT at_most
            ) AS heaviest
        )
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
    );
END
$$;
