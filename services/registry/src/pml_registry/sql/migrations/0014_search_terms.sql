-- Search by words: the terms of every tool and of every listed capability, by weight. Of each term
-- of an intent the heaviest are read in the index's order, so that a search takes as long among many
-- records as among few. The full-text columns that it replaces had to rank every match.
CREATE TABLE search_term (
    org text NOT NULL,
    project text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('tool', 'capability')),
    term text NOT NULL,
    weight real NOT NULL,
    id text NOT NULL,
    PRIMARY KEY (org, project, kind, term, weight, id)
);

-- Weighed terms of a row; of one without, those of its document: pml_registry.domain.terms says the
-- same in Python, and the stems of both are Snowball's.
CREATE FUNCTION weighed_terms(terms jsonb, document text)
RETURNS TABLE (term text, weight real)
LANGUAGE sql STABLE
BEGIN ATOMIC
    SELECT stored.key, stored.value::real
    FROM jsonb_each_text(terms) AS stored
    UNION ALL
    SELECT
        found.lexeme,
        (found.times / (found.times + 1.0 + sum(found.times) OVER () / 40.0))::real
    FROM (
        SELECT lexeme, cardinality(positions)::double precision AS times
        FROM unnest(to_tsvector('english', document))
        WHERE terms IS NULL
    ) AS found;
END;

-- Rows of before were weighed by other stems. As before migration 0008: a tool is stored and embedded
-- anew with its server's next list, others are found by the words of their documents.
UPDATE tool_schema SET terms = NULL;
UPDATE workflow_pattern SET terms = NULL;

INSERT INTO search_term
SELECT org, project, 'tool', weighed.term, weighed.weight, tool_id
FROM tool_schema
CROSS JOIN LATERAL weighed_terms(terms, document) AS weighed;

INSERT INTO search_term
SELECT org, project, 'capability', weighed.term, weighed.weight, pattern_id::text
FROM workflow_pattern
CROSS JOIN LATERAL weighed_terms(terms, document) AS weighed
WHERE listed;

CREATE FUNCTION put_search_terms(
    of_org text, of_project text, of_kind text, of_id text, terms jsonb, document text
)
RETURNS void
LANGUAGE sql
BEGIN ATOMIC
    INSERT INTO search_term
    SELECT of_org, of_project, of_kind, weighed.term, weighed.weight, of_id
    FROM weighed_terms(terms, document) AS weighed;
END;

CREATE FUNCTION remove_search_terms(
    of_org text, of_project text, of_kind text, of_id text, terms jsonb, document text
)
RETURNS void
LANGUAGE sql
BEGIN ATOMIC
    DELETE FROM search_term found
    USING weighed_terms(terms, document) AS weighed
    WHERE found.org = of_org AND found.project = of_project AND found.kind = of_kind
        AND found.term = weighed.term AND found.weight = weighed.weight AND found.id = of_id;
END;

CREATE FUNCTION search_tool() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        PERFORM remove_search_terms(
            OLD.org, OLD.project, 'tool', OLD.tool_id, OLD.terms, OLD.document
        );
    END IF;
    IF TG_OP <> 'DELETE' THEN
        PERFORM put_search_terms(
            NEW.org, NEW.project, 'tool', NEW.tool_id, NEW.terms, NEW.document
        );
    END IF;
    RETURN NULL;
END
$$;

CREATE FUNCTION search_capability() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' AND OLD.listed THEN
        PERFORM remove_search_terms(
            OLD.org, OLD.project, 'capability', OLD.pattern_id::text, OLD.terms, OLD.document
        );
    END IF;
    IF TG_OP <> 'DELETE' AND NEW.listed THEN
        PERFORM put_search_terms(
            NEW.org, NEW.project, 'capability', NEW.pattern_id::text, NEW.terms, NEW.document
        );
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER search_tool_stored AFTER INSERT OR DELETE OR UPDATE OF terms, document ON tool_schema
    FOR EACH ROW EXECUTE FUNCTION search_tool();
CREATE TRIGGER search_capability_stored
    AFTER INSERT OR DELETE OR UPDATE OF terms, document, listed ON workflow_pattern
    FOR EACH ROW EXECUTE FUNCTION search_capability();

ALTER TABLE tool_schema DROP COLUMN words;
ALTER TABLE workflow_pattern DROP COLUMN words;

-- A candidate's terms and vector are read with its row. Kept in the row up to a page, they need no
-- reading of chunks and no decompression.
ALTER TABLE tool_schema SET (toast_tuple_target = 8160);
ALTER TABLE workflow_pattern SET (toast_tuple_target = 8160);
