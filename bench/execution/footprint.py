"""Memory and storage of a stack: resident memory by part, sizes of streams and of tables."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import asyncpg
import psutil
from execution.processor import below, snapshot
from nats.aio.client import Client
from nats.js import JetStreamContext

from pml_common.bus.streams import stream_names
from pml_local.stack import Stack

_MIB = 2**20
_TABLES = """
SELECT format('%s.%s', schemaname, relname) AS name,
       pg_total_relation_size(relid) AS bytes
FROM pg_stat_user_tables WHERE schemaname IN ('gateway', 'learner', 'registry')
"""
_WORK = """
SELECT (SELECT sum(xact_commit)::bigint FROM pg_stat_database) AS transactions,
       (SELECT sum(fsyncs)::bigint FROM pg_stat_io WHERE object = 'wal') AS log_flushes,
       (SELECT wal_bytes::bigint FROM pg_stat_wal) AS log_bytes
"""
"""Work of Postgres so far, as its own counters tell; they lag by a second."""


@dataclass(frozen=True)
class Footprint:
    """Footprint of a stack after `workflows`. Memory is resident memory in MiB; of Postgres, whose
    processes share most of theirs, each one's share (PSS). `postgres` is the work that it did so
    far, `cpu_ms` the CPU that the stack and its callers used."""

    workflows: int
    memory_mib: Mapping[str, float]
    stream_messages: Mapping[str, int]
    stream_bytes: Mapping[str, int]
    table_bytes: Mapping[str, int]
    postgres: Mapping[str, int]
    cpu_ms: float


class Footprints:
    """Connections to the stores of a stack, which take footprints."""

    def __init__(self, stack: Stack, jetstream: JetStreamContext, database: asyncpg.Connection):
        self._stack = stack
        self._jetstream = jetstream
        self._database = database

    async def take(self, workflows: int) -> Footprint:
        """Take one."""
        cpu_ms = sum(snapshot(self._stack).values())
        states = {name: (await self._jetstream.stream_info(name)).state for name in stream_names()}
        rows = await self._database.fetch(_TABLES)
        [work] = await self._database.fetch(_WORK)
        return Footprint(
            workflows,
            _memory(self._stack),
            {name: state.messages for name, state in states.items()},
            {name: state.bytes for name, state in states.items()},
            {row["name"]: row["bytes"] for row in rows},
            dict(work),
            cpu_ms,
        )


@asynccontextmanager
async def footprints(stack: Stack) -> AsyncGenerator[Footprints]:
    """Connect to the stores of a stack until the context exits."""
    client, database = Client(), await asyncpg.connect(stack.postgres_dsn)
    try:
        await client.connect(stack.nats_url)
        yield Footprints(stack, JetStreamContext(client), database)
    finally:
        await client.close()
        await database.close()


def _memory(stack: Stack) -> dict[str, float]:
    found = {name: _resident(part.pid) for name, part in stack.parts.items()}
    postgres, executor = stack.pid_of("postgres"), stack.pid_of("executor")
    found["postgres"] = sum(map(_shared_once, [postgres, *below(postgres)]))
    found["sandboxes"] = sum(map(_resident, below(executor)))
    return found


def _resident(pid: int) -> float:
    """Zero once the process is gone."""
    try:
        return psutil.Process(pid).memory_info().rss / _MIB
    except psutil.NoSuchProcess:
        return 0.0


def _shared_once(pid: int) -> float:
    """Zero once the process is gone."""
    try:
        return psutil.Process(pid).memory_full_info().pss / _MIB
    except psutil.NoSuchProcess:
        return 0.0
