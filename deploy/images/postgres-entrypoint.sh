#!/bin/sh
# Starts Postgres as the official image does, for what deploy/compose.yml uses of it: at the first
# start a cluster with POSTGRES_USER, its password from POSTGRES_PASSWORD_FILE, the database
# POSTGRES_DB, and the scripts of /docker-entrypoint-initdb.d, in order. Later starts change nothing.
set -eu

if [ "${1-}" != postgres ] || [ -s "$PGDATA/PG_VERSION" ]; then
  exec "$@"
fi
: "${POSTGRES_PASSWORD_FILE:?is not set: name the file of the password}"
export POSTGRES_USER="${POSTGRES_USER:-postgres}"
export POSTGRES_DB="${POSTGRES_DB:-$POSTGRES_USER}"
initdb --username="$POSTGRES_USER" --pwfile="$POSTGRES_PASSWORD_FILE" --encoding=UTF8 \
  --auth-local=trust --auth-host=scram-sha-256
echo "host all all all scram-sha-256" >>"$PGDATA/pg_hba.conf"
echo "listen_addresses = '*'" >>"$PGDATA/postgresql.conf"
# On its socket alone, so that nobody takes it for ready.
pg_ctl --pgdata="$PGDATA" --wait --options="-c listen_addresses=''" start
export PGHOST=/var/run/postgresql PGUSER="$POSTGRES_USER"
if [ "$POSTGRES_DB" != postgres ]; then
  psql --quiet --dbname=postgres --set=ON_ERROR_STOP=1 --set=db="$POSTGRES_DB" <<'SQL'
CREATE DATABASE :"db";
SQL
fi
for file in /docker-entrypoint-initdb.d/*; do
  case "$file" in
    *.sh) . "$file" ;;
    *.sql) psql --quiet --dbname="$POSTGRES_DB" --set=ON_ERROR_STOP=1 --file="$file" ;;
  esac
done
unset PGHOST PGUSER
pg_ctl --pgdata="$PGDATA" --mode=fast --wait stop
exec "$@"
