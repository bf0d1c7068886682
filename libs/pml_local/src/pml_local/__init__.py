"""The embedded stack: NATS, Postgres, Deno and the five services on one machine."""
