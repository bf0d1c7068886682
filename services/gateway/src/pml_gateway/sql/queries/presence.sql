-- name: enter
SELECT pg_try_advisory_lock($1)

-- name: is-present
SELECT EXISTS (
    SELECT
    FROM pg_locks
    WHERE locktype = 'advisory'
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND objsubid = 1
        AND granted
        AND (classid::bigint << 32) | objid::bigint = $1
)
