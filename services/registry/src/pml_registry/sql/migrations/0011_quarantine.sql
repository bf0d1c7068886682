-- Tools of a server that the gateway holds back: their servers changed the definition that was
-- accepted. They are in the server's list, not in tool_schema: nothing finds or offers them.
ALTER TABLE tool_server ADD COLUMN quarantined json NOT NULL DEFAULT '[]';

-- Types of results, of tools whose server gives no output schema; only widened while the definition
-- stays the same. Apart from tool_schema, whose rows come and go with the lists of servers.
CREATE TABLE tool_output (
    org text NOT NULL,
    project text NOT NULL,
    tool_id text NOT NULL,
    definition_hash text NOT NULL,
    shape json NOT NULL,
    learned_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (org, project, tool_id)
);
