"""Budget of one workflow on the whole stack: the messages that are stored for it, and its
transactions and flushes in Postgres.

A failure means that somebody added one to each workflow. The program is known, makes one call that
only reads, and its run needs no approval. Each workflow is handled to its end before the next one
begins, and lasts until it is stored, so that it shares a transaction neither with another nor with
its own end: under load, many do.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import asyncpg
import httpx2
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus import names
from pml_common.bus.connection import flush, subscribe
from pml_common.bus.names import prefix_of
from pml_common.contracts import catalog
from pml_common.contracts.base import Message
from pml_common.contracts.catalog import MessageType
from pml_local.composition import StackOptions
from pml_local.ports import free_port
from pml_local.stack import Stack, embedded_stack

pytestmark = pytest.mark.e2e

CODE = """
await new Promise((later) => setTimeout(later, 400));
return await mcp.pml_stub.echo({ greeting: "hello" });
"""
"""Lasts longer than a batch of the gateway's."""
WORKFLOWS, WARM_UP = 10, 5

ONCE: tuple[MessageType[Message], ...] = (
    catalog.WORKFLOW_ACCEPTED,
    catalog.RUN_FINISHED,
)
"""Stored for each workflow."""
AT_MOST_ONCE: tuple[MessageType[Message], ...] = (
    catalog.LEARNING_UPDATED,
    catalog.EDGES_OBSERVED,
    catalog.CAPABILITY_CHANGED,
)
"""Stored for each workflow, or for several together."""

HANDLED = (
    catalog.EXECUTOR_ON_WORKFLOW_ACCEPTED,
    catalog.GATEWAY_ON_WORKFLOW_ACCEPTED,
    catalog.GATEWAY_ON_RUN_FINISHED,
    catalog.LEARNER_ON_RUN_FINISHED,
    catalog.REGISTRY_ON_LEARNING_UPDATED,
    catalog.REGISTRY_ON_EDGES_OBSERVED,
)
"""Acknowledge one message of each workflow."""

WRITES = 6
"""Transactions that change something: the call's outcome, stored, ended, learned, statistics, and
edges. The least of all workflows counts, since the work of the clock adds to some."""
TRANSACTIONS = 7.3
"""The same and those that only look, on average: 6.5, without the work of the clock."""
FLUSHES = 6.2
"""Of the write-ahead log, likewise: 5.3; a read's outcome needs none."""
IDLE = 12
"""Transactions of the clock alone, over which its rate is measured: a slow machine sees more of
them in one workflow, and they are none of its own."""
REPORTED_S = 11.0
"""By Postgres' clock. Its processes report what they did a second after they last reported, or when
they have been idle for ten: without this wait, workflows before the first one count, too."""

QUIET = {
    "PML_GATEWAY_STUB_TOOLS": "true",
    "PML_GATEWAY_SWEEP_EVERY_S": "3600",
    "PML_EXECUTOR_JOURNAL_FLUSH_S": "3600",
}
"""Nothing but workflows uses the stores, however long they take."""


_DURABLE = 3
"""Place of the consumer's name in the subject of an acknowledgement."""


@dataclass(frozen=True)
class Spent:
    """Transactions committed, flushes of the write-ahead log, the next transaction's id, which
    only those that change something take, and Postgres' clock in seconds."""

    transactions: int
    flushes: int
    next_id: int
    at_s: float


@pytest.fixture
async def stack(stack_home: Path) -> AsyncGenerator[Stack]:
    """A stack that uses its stores for workflows alone."""
    options = StackOptions(stack_home, gateway_port=free_port(), env=QUIET)
    async with embedded_stack(options) as running:
        yield running


async def spent(session: asyncpg.Connection) -> Spent:
    """Read Postgres' own counters."""
    row = await session.fetchrow(
        """
        SELECT
            (
                SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()
            ) AS transactions,
            (SELECT sum(fsyncs)::bigint FROM pg_stat_io WHERE object = 'wal') AS flushes,
            pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS next_id,
            extract(epoch FROM clock_timestamp())::float8 AS at_s
        """
    )
    assert row is not None
    return Spent(**row)


async def spent_when(session: asyncpg.Connection, holds: Callable[[Spent], bool]) -> Spent:
    """Wait for counters of which this holds, in one transaction of our own."""

    async def is_so() -> bool:
        return holds(await spent(session))

    async with session.transaction():
        await session.execute("SET LOCAL stats_fetch_consistency = none")
        await eventually(is_so)
        return await spent(session)


async def reported(session: asyncpg.Connection) -> Spent:
    """Wait until all that happened is in the counters."""
    now = (await spent(session)).at_s
    return await spent_when(session, lambda seen: seen.at_s - now >= REPORTED_S)


@dataclass(frozen=True)
class Bench:
    """A stack's stores, and workflows that are handled to their end one after another."""

    client: Client
    session: asyncpg.Connection
    run: Callable[[], Awaitable[None]]


@pytest.fixture
async def bench(stack: Stack) -> AsyncGenerator[Bench]:
    """A bench that is warm."""
    handled, client = Counter[str](), Client()

    async def acknowledged(message: Msg) -> None:
        if message.data in (b"", b"+ACK"):
            handled[message.subject.split(".")[_DURABLE]] += 1

    await client.connect(stack.nats_url)
    session = await asyncpg.connect(stack.postgres_dsn)
    try:
        async with httpx2.AsyncClient(base_url=stack.url, timeout=PATIENCE_S) as http:

            async def run() -> None:
                handled.clear()
                answer = (await http.post("/api/execute", json={"code": CODE})).json()
                assert answer["status"] == "success", answer
                await eventually(lambda: all(handled[each.durable] for each in HANDLED))

            await subscribe(client, "$JS.ACK.>", acknowledged)
            await flush(client)
            for _ in range(WARM_UP):
                await run()
            yield Bench(client, session, run)
    finally:
        await session.close()
        await client.close()


async def test_a_workflow_stores_what_its_budget_names(bench: Bench) -> None:
    stored, ids = Counter[str](), list[int]()

    async def note(message: Msg) -> None:
        if not message.subject.endswith(".write-check"):
            stored[".".join(message.subject.split(".")[:5])] += 1

    for kind in names.KINDS:
        await subscribe(bench.client, f"pml.{kind}.>", note)
    await flush(bench.client)
    stored.clear()
    ids.append((await spent(bench.session)).next_id)
    for _ in range(WORKFLOWS):
        await bench.run()
        ids.append((await spent(bench.session)).next_id)
    assert {each.name: stored.pop(prefix_of(each)) for each in ONCE} == {
        each.name: WORKFLOWS for each in ONCE
    }
    for each in AT_MOST_ONCE:
        assert stored.pop(prefix_of(each), 0) <= WORKFLOWS, each.name
    assert not stored, "messages that are in no budget"
    assert min(after - before for before, after in pairwise(ids)) == WRITES


@pytest.mark.nightly
async def test_a_workflow_uses_postgres_no_more_than_its_budget(bench: Bench) -> None:
    first = await reported(bench.session)
    for _ in range(WORKFLOWS):
        await bench.run()
    last = await reported(bench.session)
    idle = await spent_when(
        bench.session, lambda seen: seen.transactions - last.transactions >= IDLE
    )
    clock = (last.at_s - first.at_s) / (idle.at_s - last.at_s)

    def of_one(at_first: int, at_last: int, when_idle: int) -> float:
        return (at_last - at_first - clock * (when_idle - at_last)) / WORKFLOWS

    transactions = of_one(first.transactions, last.transactions, idle.transactions)
    flushes = of_one(first.flushes, last.flushes, idle.flushes)
    assert transactions <= TRANSACTIONS
    assert flushes <= FLUSHES
