-- The definition of each tool that may be offered and called: the first one that its server listed,
-- until an approver accepts another. Rows stay when a tool or its server goes away: one that comes
-- back is compared with what it was. `definition` is as the server declares it, whether or not its
-- hints are trusted. `accepted_by` is null where it was trusted on first use.
CREATE TABLE accepted_tool (
    org text NOT NULL,
    project text NOT NULL,
    tool_id text NOT NULL,
    definition json NOT NULL,
    accepted_by text,
    accepted_at timestamptz NOT NULL,
    PRIMARY KEY (org, project, tool_id)
);
