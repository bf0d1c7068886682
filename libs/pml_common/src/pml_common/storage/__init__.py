"""Postgres as the services use it: pool, migrations, named queries, inbox."""
