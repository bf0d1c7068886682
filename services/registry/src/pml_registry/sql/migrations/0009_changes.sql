-- What was changed of records, in order; also the outbox of the events about it. Changes that are
-- said by another message (a name that a workflow got) are published from the start.
CREATE TABLE capability_changes (
    org text NOT NULL,
    project text NOT NULL,
    record_id uuid NOT NULL,
    sequence integer NOT NULL CHECK (sequence > 0),
    change text NOT NULL,
    principal text NOT NULL,
    -- Of the insertion, under the record's lock: a transaction may begin before the one it waits for.
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    version integer NOT NULL,
    pattern_id uuid NOT NULL,
    tag integer[] CHECK (cardinality(tag) = 3),
    details jsonb NOT NULL DEFAULT '{}',
    -- The request that made it: a repetition is answered as it was.
    request_id uuid,
    published boolean NOT NULL DEFAULT true,
    PRIMARY KEY (org, project, record_id, sequence),
    UNIQUE (org, project, request_id),
    FOREIGN KEY (org, project, record_id)
        REFERENCES capability_records (org, project, record_id) ON DELETE CASCADE
);

CREATE INDEX capability_changes_unpublished ON capability_changes (at) WHERE NOT published;

INSERT INTO capability_changes (
    org, project, record_id, sequence, change, principal, at, version, pattern_id
)
SELECT org, project, record_id, 1, 'created', created_by, created_at, 1, pattern_id
FROM capability_versions
WHERE number = 1;

-- What other scopes find by its name.
CREATE INDEX capability_records_shared ON capability_records (callable_name)
    WHERE visibility IN ('org', 'public');
CREATE INDEX capability_aliases_shared ON capability_aliases (callable_name);
