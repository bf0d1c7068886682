"""Budget of one workflow on the whole stack: the messages that are stored for it, and its
transactions and flushes in Postgres.

A failure means that somebody added one to each workflow. The program is known, makes one call that
only reads, and its run needs no approval. Each workflow is handled to its end before the next one
begins, so none shares a transaction with another: under load, many do.
"""

from collections import Counter
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import httpx2
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from libs.pml_local.tests.support.harness import eventually
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

CODE = 'return await mcp.pml_stub.echo({ greeting: "hello" });'
WORKFLOWS, WARM_UP = 20, 5

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
)
"""Acknowledge one message of each workflow."""

TRANSACTIONS = 7.5
"""The call's outcome; stored; ended; learned, a look and a change; statistics, a look and a change.
The half is for the work of the clock."""
FLUSHES = 4.5
"""Of the write-ahead log: stored, ended, learned, statistics; a read needs none."""

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
    """Transactions committed, and flushes of the write-ahead log."""

    transactions: int
    flushes: int


@pytest.fixture
async def stack(stack_home: Path) -> AsyncGenerator[Stack]:
    """A stack that uses its stores for workflows alone."""
    options = StackOptions(stack_home, gateway_port=free_port(), env=QUIET)
    async with embedded_stack(options) as running:
        yield running


async def spent(stack: Stack) -> Spent:
    """Read Postgres' own counters, once they are written."""
    connection = await asyncpg.connect(stack.postgres_dsn)
    try:
        await connection.execute("SELECT pg_stat_force_next_flush()")
        transactions = await connection.fetchval(
            "SELECT sum(xact_commit)::bigint FROM pg_stat_database"
        )
        flushes = await connection.fetchval(
            "SELECT sum(fsyncs)::bigint FROM pg_stat_io WHERE object = 'wal'"
        )
    finally:
        await connection.close()
    return Spent(transactions, flushes)


async def test_a_workflow_spends_no_more_than_its_budget(stack: Stack) -> None:
    stored, handled, client = Counter[str](), Counter[str](), Client()

    async def note(message: Msg) -> None:
        if not message.subject.endswith(".write-check"):
            stored[".".join(message.subject.split(".")[:5])] += 1

    async def acknowledged(message: Msg) -> None:
        if message.data in (b"", b"+ACK"):
            handled[message.subject.split(".")[_DURABLE]] += 1

    await client.connect(stack.nats_url)
    try:
        async with httpx2.AsyncClient(base_url=stack.url, timeout=60.0) as http:

            async def run(times: int) -> None:
                for _ in range(times):
                    handled.clear()
                    answer = (await http.post("/api/execute", json={"code": CODE})).json()
                    assert answer["status"] == "success", answer
                    await eventually(lambda: all(handled[each.durable] for each in HANDLED))

            await subscribe(client, "$JS.ACK.>", acknowledged)
            await flush(client)
            await run(WARM_UP)
            for kind in names.KINDS:
                await subscribe(client, f"pml.{kind}.>", note)
            await flush(client)
            before = await spent(stack)
            stored.clear()
            await run(WORKFLOWS)
            after = await spent(stack)
    finally:
        await client.close()
    assert {each.name: stored.pop(prefix_of(each)) for each in ONCE} == {
        each.name: WORKFLOWS for each in ONCE
    }
    for each in AT_MOST_ONCE:
        assert stored.pop(prefix_of(each), 0) <= WORKFLOWS, each.name
    assert not stored, "messages that are in no budget"
    assert (after.transactions - before.transactions) / WORKFLOWS <= TRANSACTIONS
    assert (after.flushes - before.flushes) / WORKFLOWS <= FLUSHES
