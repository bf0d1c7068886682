-- What is learned follows from a capability's traces in the order of their positions: the state at
-- `position`, by the rules of `rule_version`, is the base with all later traces folded into it. Rows
-- whose run_count is not their position were written before there were positions; the counts and
-- `learning` are kept for processes that know nothing else.
ALTER TABLE learning
    ADD COLUMN position integer NOT NULL DEFAULT 0,
    ADD COLUMN state json,
    ADD COLUMN rule_version integer NOT NULL DEFAULT 0,
    ADD COLUMN rebuilds integer NOT NULL DEFAULT 0,
    ADD COLUMN base_position integer NOT NULL DEFAULT 0,
    ADD COLUMN base json,
    ADD COLUMN rebuilt_position integer NOT NULL DEFAULT 0,
    ADD COLUMN rebuilt_version integer NOT NULL DEFAULT 0,
    ADD COLUMN rebuilt json,
    ADD COLUMN is_stale boolean NOT NULL DEFAULT false;

COMMENT ON COLUMN learning.base IS 'what the traces up to base_position taught: they may be gone';
COMMENT ON COLUMN learning.rebuilt IS 'how far a rebuild has come, at rebuilt_position';
COMMENT ON COLUMN learning.is_stale IS 'lacks lessons of traces, or a rebuild is to be published';

CREATE INDEX idx_learning_stale ON learning (rule_version) WHERE is_stale;
CREATE INDEX idx_learning_rule ON learning (rule_version) WHERE position > base_position;

ALTER TABLE execution_trace ADD COLUMN fault text, ADD COLUMN position integer;

COMMENT ON COLUMN execution_trace.fault IS 'caller, environment or capability; null for a success';
COMMENT ON COLUMN execution_trace.position IS 'in the order of storage, of a capability; from 1';

CREATE INDEX idx_exec_trace_position ON execution_trace (org, project, capability_id, position)
    WHERE position IS NOT NULL;
