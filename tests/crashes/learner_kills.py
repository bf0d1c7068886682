"""`python -m tests.crashes.learner_kills [--kills N] [--seed N]`: learners killed at random.

Runs arrive all the time. A learner is killed (-9) some time after it has stored something, the next
one takes over. In the end each run must have one trace, must be counted once, and be told once.
Exit code 1 on any failure.
"""

import argparse
import asyncio
import multiprocessing
import random
import secrets
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from time import monotonic

import asyncpg
from nats.aio.client import Client
from nats.js import JetStreamContext

from libs.pml_local.tests.support.databases import Databases, as_owner, migrated
from libs.pml_local.tests.support.harness import (
    eventually,
    reachable_folder,
    running_postgres,
    stack_identity,
)
from pml_common.bus.nats_bus import NatsBus
from pml_common.bus.streams import StreamSettings
from pml_common.contracts import catalog
from pml_common.contracts.catalog import SERVICES
from pml_common.contracts.executor import RunFinished
from pml_common.contracts.learner import EdgesObserved, LearningUpdated
from pml_local.keys import make_keys
from pml_local.nats import NatsServer
from pml_local.parts import start_part
from services.learner.tests.support.builders import SCOPE, finished_run, tool_call
from tests.crashes.killed_learner import ImpatientBus, learn_until_killed

CAPABILITIES = 5
A_SECOND = 100
SPREAD_S = 0.15
"""A batch is collected for 100 ms and then handled: a kill comes anywhere in that."""

_STORED = "SELECT count(*) FROM learner.execution_trace"
_COUNTED = """
SELECT
    (SELECT count(DISTINCT id) FROM learner.execution_trace) AS traces,
    (SELECT count(*) FROM learner.execution_trace) AS rows,
    (SELECT sum(run_count) FROM learner.learning)::bigint AS learned,
    (SELECT sum(calls) FROM learner.tool_usage)::bigint AS calls
"""


@dataclass(frozen=True)
class Outcome:
    """The numbers of what was stored of `runs` runs under so many `kills`: `traces` to `edges` are
    to be the same as `runs`. `told` and `edges` are the runs that the published messages speak of,
    `again` the deliveries beyond the first."""

    runs: int
    traces: int
    rows: int
    learned: int
    calls: int
    told: int
    edges: int
    dead: int
    kills: int
    again: int

    @property
    def faults(self) -> Sequence[str]:
        """The numbers that are not those of the runs."""
        names = ("traces", "rows", "learned", "calls", "told", "edges")
        wrong = [name for name in names if getattr(self, name) != self.runs]
        return [*wrong, *(["dead"] if self.dead else [])]


class Learners:
    """One learner at a time."""

    def __init__(self, nats_url: str, dsn: str, home: Path) -> None:
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload([learn_until_killed.__module__])
        self._given = nats_url, dsn, home, ImpatientBus
        self._process: BaseProcess | None = None
        self.kills = 0

    def start(self) -> None:
        """Start the next one."""
        self._process = self._context.Process(target=learn_until_killed, args=self._given)
        self._process.start()

    def kill(self) -> None:
        """Kill it and wait until it is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.join(10)
            self._process.close()
            self._process = None
            self.kills += 1


async def publish(bus: NatsBus, runs: list[RunFinished], stop: asyncio.Event) -> None:
    """Publish runs of several capabilities at a steady rate."""
    while not stop.is_set():
        number = len(runs)
        tool = f"fs:{number % CAPABILITIES}"
        run = finished_run(
            success=number % 3 != 0,
            code_hash=f"{number % CAPABILITIES:02}" * 32,
            calls=[tool_call(tool, 0, 1)],
        )
        await bus.publish(run)
        runs.append(run)
        with suppress(TimeoutError):
            async with asyncio.timeout(1 / A_SECOND):
                await stop.wait()


async def kill_learners(nats_url: str, dsn: str, home: Path, kills: int, seed: int) -> Outcome:
    """Kill that many learners at random and count what they left."""
    chance = random.Random(seed)  # noqa: S311 - not for secrets
    learners, runs, stop = Learners(nats_url, dsn, home), list[RunFinished](), asyncio.Event()
    bus = await NatsBus.connect(nats_url, service="executor", identity=stack_identity(home))
    store = await asyncpg.connect(as_owner(dsn), server_settings={"pml.migrating": "on"})
    learners.start()
    publishing = asyncio.create_task(publish(bus, runs, stop))

    async def stored(more_than: int) -> int | None:
        with suppress(asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError):
            count: int = await store.fetchval(_STORED)
            return count if count > more_than else None
        return None

    try:
        known = 0
        for _ in range(kills):
            before = known
            known = await eventually(lambda before=before: stored(before))
            await asyncio.sleep(chance.random() * SPREAD_S)  # waits: kills at any moment
            learners.kill()
            learners.start()
        stop.set()
        await publishing
        await eventually(lambda: stored(len(runs) - 1))
        return await _counted(bus, store, nats_url, runs, learners.kills)
    finally:
        stop.set()
        await publishing
        learners.kill()
        await store.close()
        await bus.drain()


async def _counted(
    bus: NatsBus, store: asyncpg.Connection, nats_url: str, runs: list[RunFinished], kills: int
) -> Outcome:
    """Wait for what is published after the last batch, and count."""

    async def told() -> tuple[int, int] | None:
        counts = [0, 0]
        for one in runs[:CAPABILITIES]:
            history = await bus.history(SCOPE, str(one.capability.capability_id))
            messages = [each.message for each in history]
            revisions = [each.revision for each in messages if isinstance(each, LearningUpdated)]
            counts[0] += max(revisions, default=0)
            counts[1] += sum(each.runs for each in messages if isinstance(each, EdgesObserved))
        return (counts[0], counts[1]) if min(counts) >= len(runs) else None

    updates, edges = await eventually(told)
    row = await store.fetchrow(_COUNTED)
    dead = len(await bus.dead_letters())
    deliveries = await _deliveries(nats_url)
    assert row is not None
    return Outcome(
        runs=len(runs),
        told=updates,
        edges=edges,
        dead=dead,
        kills=kills,
        again=deliveries - len(runs),
        **row,
    )


async def _deliveries(nats_url: str) -> int:
    client = Client()
    await client.connect(nats_url)
    try:
        durable = catalog.LEARNER_ON_RUN_FINISHED.durable
        info = await JetStreamContext(client).consumer_info("PML_EXECUTOR_EVT", durable)
        return 0 if info.delivered is None else info.delivered.consumer_seq
    finally:
        await client.close()


@asynccontextmanager
async def _servers(home: Path) -> AsyncGenerator[tuple[str, str]]:
    """Run NATS and Postgres; yields their URLs."""
    server = NatsServer(
        home / "nats", home / "nats.log", secrets.token_hex(), streams=StreamSettings()
    )
    process = await start_part(server)
    try:
        async with running_postgres(home) as postgres, Databases(postgres).empty() as dsn:
            yield server.url, await migrated(dsn, "learner")
    finally:
        await process.kill()


async def run(kills: int, seed: int) -> Outcome:
    """Kill learners of servers of their own."""
    with reachable_folder() as home:
        make_keys(home / "keys", SERVICES)
        async with _servers(home) as (nats_url, dsn):
            return await kill_learners(nats_url, dsn, home, kills, seed)


def main() -> None:
    """Print the outcome."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    began = monotonic()
    outcome = asyncio.run(run(given.kills, given.seed))
    sys.stdout.write(f"{outcome}\ntook {monotonic() - began:.0f} s, seed {given.seed}\n")
    sys.stdout.write(f"wrong: {', '.join(outcome.faults) or 'nothing'}\n")
    sys.exit(1 if outcome.faults else 0)


if __name__ == "__main__":
    main()
