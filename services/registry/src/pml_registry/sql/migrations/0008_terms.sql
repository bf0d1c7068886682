-- Weighed terms for the lexical part of a score: {"term": weight}. Computed by the registry, so that
-- every store ranks alike. NULL in rows from before: a tool is stored and embedded anew with its
-- server's next list, a capability's terms are computed from its document whenever it is a candidate.
ALTER TABLE tool_schema ADD COLUMN terms jsonb;
ALTER TABLE workflow_pattern ADD COLUMN terms jsonb;
