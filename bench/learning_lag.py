"""The time from the publication of a run to the commit of its trace, at a steady rate of runs.

A learner in a process of its own, NATS, and a durable Postgres; the runs are generated, sandbox,
executor and gateway are left out. With the processor time of each run, by process.
`uv run python bench/learning_lag.py [--rate N] [--seconds S] [--capabilities N]`
"""

import argparse
import asyncio
import multiprocessing
import os
import secrets
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import quantiles
from uuid import UUID

sys.path.insert(0, str(Path(__file__).parent.parent))  # when run as a script

import asyncpg
import psutil
from traces import CAPABILITIES, DURABLE, FEW, run_of

from libs.pml_local.tests.support.databases import Databases, as_owner, migrated
from libs.pml_local.tests.support.harness import (
    eventually,
    reachable_folder,
    running_postgres,
    stack_identity,
)
from pml_common.bus.nats_bus import NatsBus
from pml_common.bus.streams import StreamSettings
from pml_common.contracts.catalog import SERVICES
from pml_local.keys import make_keys
from pml_local.nats import NatsServer
from pml_local.parts import start_part
from tests.crashes.killed_learner import learn_until_killed

_STORED = "SELECT count(*) FROM learner.inbox WHERE consumer = 'learner-on-run-finished'"
_LAGS = """
SELECT
    message_id,
    extract(epoch FROM pg_xact_commit_timestamp(xmin))::double precision AS stored_at
FROM learner.inbox WHERE consumer = 'learner-on-run-finished'
"""


def cpu_ms(pids: Sequence[int]) -> Mapping[str, float]:
    """Return the processor time so far of processes and their children, by name."""
    found: dict[str, float] = {}
    for pid in pids:
        root = psutil.Process(pid)
        times = [each.cpu_times() for each in (root, *root.children(recursive=True))]
        found[root.name()] = sum(each.user + each.system for each in times) * 1000
    return found


async def lags(
    nats_url: str, dsn: str, home: Path, nats_pid: int, given: argparse.Namespace
) -> tuple[Sequence[float], str]:
    """Return the seconds from each run's publication to the commit of its trace, sorted, and the
    processor time of each run."""
    rate, seconds, capabilities = given.rate, given.seconds, given.capabilities
    postgres = int((home / "postgres/data/postmaster.pid").read_text().split()[0])
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([learn_until_killed.__module__])
    learner = context.Process(target=learn_until_killed, args=(nats_url, dsn, home, NatsBus))
    learner.start()
    bus = await NatsBus.connect(nats_url, service="executor", identity=stack_identity(home))
    session = await asyncpg.connect(as_owner(dsn), server_settings={"pml.migrating": "on"})
    published = dict[UUID, float]()

    async def stored() -> bool:
        await asyncio.sleep(0.5)  # a count costs time, too
        try:
            return await session.fetchval(_STORED) >= len(published)
        except (asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError):
            return False

    async def publish(number: int) -> None:
        run = run_of(number, capabilities)
        published[run.event_id] = time.time()
        await bus.publish(run)

    try:
        await asyncio.gather(*(publish(number) for number in range(CAPABILITIES)))
        await eventually(stored)
        published.clear()
        await session.execute("TRUNCATE learner.inbox")
        pids = (learner.pid or 0, postgres, nats_pid)
        before = cpu_ms(pids)
        began, sending = time.monotonic(), set[asyncio.Task[None]]()
        for number in range(rate * seconds):
            task = asyncio.create_task(publish(number))
            sending.add(task)
            task.add_done_callback(sending.discard)
            ahead = began + (number + 1) / rate - time.monotonic()
            await asyncio.sleep(max(0.0, ahead))
        await asyncio.gather(*sending)
        reached = rate * seconds / (time.monotonic() - began)
        print(f"{reached:.0f} runs a second for {seconds} s")
        await eventually(stored, within=300)
        after, rows = cpu_ms(pids), await session.fetch(_LAGS)
        spent = [f"{name} {(after[name] - before[name]) / len(rows):.2f}" for name in after]
        late = [row["stored_at"] - published[row["message_id"]] for row in rows]
        return sorted(late), ", ".join(spent)
    finally:
        learner.kill()
        learner.join(10)
        await session.close()
        await bus.drain()


async def measure(given: argparse.Namespace, home: Path) -> None:
    """Print how late traces are."""
    nats = NatsServer(
        home / "nats", home / "nats.log", secrets.token_hex(), streams=StreamSettings()
    )
    async with (
        running_postgres(home, **DURABLE, track_commit_timestamp="on") as server,
        Databases(server).empty() as dsn,
    ):
        process = await start_part(nats)
        try:
            dsn = await migrated(dsn, "learner")
            late, used = await lags(nats.url, dsn, home, process.pid, given)
        finally:
            await process.kill()
    cuts = quantiles(late, n=100)
    print(
        f"Lag of {len(late)} runs of {given.capabilities} capabilities, {given.rate} a second: "
        f"p50 {cuts[49] * 1e3:.0f} ms, p99 {cuts[98] * 1e3:.0f} ms, longest {late[-1] * 1e3:.0f} ms"
        f"; CPU ms of each run: {used} (load at the end {os.getloadavg()[0]:.1f})."
    )


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=100)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--capabilities", type=int, default=FEW)
    given = parser.parse_args()
    with reachable_folder() as home:
        make_keys(home / "keys", SERVICES)
        asyncio.run(measure(given, home))


if __name__ == "__main__":
    main()
