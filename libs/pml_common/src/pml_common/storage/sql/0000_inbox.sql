-- What was handled, and the facts that handling stated: a redelivery states them again.
CREATE TABLE inbox (
    message_id uuid NOT NULL,
    consumer text NOT NULL,
    facts json NOT NULL DEFAULT '[]',
    handled_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (message_id, consumer)
);

CREATE INDEX inbox_handled_at ON inbox (handled_at);
