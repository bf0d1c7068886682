"""Costs of single operations on NATS and Postgres by their settings, without PML.

Streams: an awaited publish of one message, on one server and on three, with each `sync_interval`.
Postgres: one committed insert, with and without waiting for the disk, and rows in batches. For
each: p50 and CPU one at a time, then operations a second and CPU from many senders. CPU is that of
all servers together, and of the sender (this process). All servers are on this machine: times show
no network, and the sender's process may be full before the servers are. Last, the memory that a
server needs for each subject of a stream.
`uv run python bench/units.py [--seconds S] [--json]`
"""

import argparse
import asyncio
import json
import secrets
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from time import perf_counter, process_time
from uuid import uuid4

sys.path.insert(0, str(Path(__file__).parent.parent))  # when run as a script

import asyncpg
import psutil
from execution.floors import p50, timed
from execution.processor import whole
from execution.throughput import two_cores
from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js import JetStreamContext, api

from libs.pml_local.tests.support.harness import (
    eventually,
    reachable_folder,
    running_postgres,
)
from pml_local.nats import ClusterMember, NatsServer
from pml_local.parts import start_part
from pml_local.ports import free_port

ALONE, SENDERS, SECONDS, BATCH = 300, 32, 3.0, 50
BODY = b"x" * 2700
"""About what a workflow with one call stores in a stream (bench/soak.py)."""
SUBJECTS, FIRST_SUBJECTS, FLUSHED = 100_000, 25_000, 1000
NATS = ((1, "2m"), (1, "always"), (3, "2m"), (3, "always"))
DURABLE = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"}
_TABLE = "CREATE TABLE unit (id bigserial PRIMARY KEY, body bytea NOT NULL)"
_INSERT = "INSERT INTO unit (body) VALUES ($1)"
_INSERT_MANY = "INSERT INTO unit (body) SELECT unnest($1::bytea[])"

Operation = Callable[[int], Awaitable[object]]
"""One operation of a sender, by the sender's number."""


@dataclass(frozen=True)
class Used:
    """CPU milliseconds of all servers, and of the sender."""

    server: float
    sender: float

    def since(self, before: "Used", operations: int) -> "Used":
        """CPU of each operation."""
        return Used(
            (self.server - before.server) / operations, (self.sender - before.sender) / operations
        )


@dataclass(frozen=True)
class Unit:
    """One operation: p50 in milliseconds and CPU alone, then its rate and CPU from many senders."""

    name: str
    alone_ms: float
    alone: Used
    per_second: float
    loaded: Used


async def measure(
    name: str, pids: Sequence[int], operation: Operation, seconds: float, *, size: int = 1
) -> Unit:
    """Measure one operation that does `size` equal things at once."""

    async def send(sender: int, end: float) -> int:
        done = 0
        while perf_counter() < end:
            await operation(sender)
            done += size
        return done

    async def load(lasting: float) -> int:
        end = perf_counter() + lasting
        return sum(await asyncio.gather(*(send(sender, end) for sender in range(SENDERS))))

    def used() -> Used:
        return Used(sum(map(whole, pids)), process_time() * 1000)

    await load(seconds / 5)
    before = used()
    alone_ms = p50(await timed(ALONE, lambda: operation(0))) / size
    alone = used().since(before, ALONE * size)
    before, began = used(), perf_counter()
    done = await load(seconds)
    per_second = done / (perf_counter() - began)
    return Unit(name, alone_ms, alone, per_second, used().since(before, done))


@asynccontextmanager
async def nats_servers(folder: Path, size: int, sync: str) -> AsyncGenerator[tuple[str, list[int]]]:
    """Run one server or a cluster; yields a URL and the pids."""
    ports, password = [free_port() for _ in range(size)], secrets.token_hex()
    async with AsyncExitStack() as running:
        servers: list[NatsServer] = []
        pids: list[int] = []
        for index, port in enumerate(ports):
            others = [other for other in ports if other != port]
            member = ClusterMember(f"s{index}", port, others) if others else None
            home = folder / f"s{index}"
            log = home.with_suffix(".log")
            server = NatsServer(home, log, password, sync_interval=sync, member=member)
            process = await start_part(server)
            running.push_async_callback(process.kill)
            servers.append(server)
            pids.append(process.pid)
        yield servers[0].url, pids


async def stream_unit(folder: Path, size: int, sync: str, seconds: float) -> Unit:
    """Measure an awaited publish, each on a subject of its own, as workflows have."""
    config = api.StreamConfig(name="UNIT", subjects=["unit.>"], num_replicas=size)
    numbers = count()
    async with nats_servers(folder, size, sync) as (url, pids):
        client = Client()
        await client.connect(url)
        jetstream = JetStreamContext(client, timeout=2.0)

        async def created() -> bool:
            try:
                await jetstream.add_stream(config)  # pyright: ignore[reportUnknownMemberType] - untyped **params
            except NatsError:  # no leader yet
                return False
            return True

        async def publish(sender: int) -> None:
            await jetstream.publish(f"unit.{sender}.{next(numbers)}", BODY)

        try:
            await eventually(created)
            servers = "1 server" if size == 1 else f"{size} replicas"
            return await measure(f"publish, {servers}, sync {sync}", pids, publish, seconds)
        finally:
            await client.close()


async def subject_bytes(folder: Path) -> float:
    """Memory of a server for each subject of a stream with one message, without what it needs for
    the first ones."""
    memory: list[int] = []
    async with nats_servers(folder, 1, "2m") as (url, [pid]):
        client = Client()
        await client.connect(url)
        try:
            config = api.StreamConfig(name="UNIT", subjects=["unit.>"])
            await JetStreamContext(client).add_stream(config)  # pyright: ignore[reportUnknownMemberType] - untyped **params
            for number in range(SUBJECTS):
                if number % FLUSHED == 0:
                    await client.flush(30)
                if number == FIRST_SUBJECTS:
                    memory.append(psutil.Process(pid).memory_info().rss)
                await client.publish(f"unit.{uuid4()}", BODY)
            await client.flush(30)
            memory.append(psutil.Process(pid).memory_info().rss)
        finally:
            await client.close()
    return (memory[1] - memory[0]) / (SUBJECTS - FIRST_SUBJECTS)


async def postgres_units(folder: Path, seconds: float) -> list[Unit]:
    """Measure inserts, on a connection for each sender."""
    async with running_postgres(folder, **DURABLE) as server, AsyncExitStack() as opened:
        connections = [await asyncpg.connect(server.dsn()) for _ in range(SENDERS)]
        for connection in connections:
            opened.push_async_callback(connection.close)
        await connections[0].execute(_TABLE)
        postmaster = psutil.Process(connections[0].get_server_pid()).ppid()

        async def insert(sender: int) -> None:
            await connections[sender].execute(_INSERT, BODY)

        async def insert_many(sender: int) -> None:
            await connections[sender].execute(_INSERT_MANY, [BODY] * BATCH)

        async def measured(name: str, operation: Operation, size: int = 1) -> Unit:
            return await measure(name, [postmaster], operation, seconds, size=size)

        waiting = await measured("insert, committed", insert)
        batched = await measured(f"row in a batch of {BATCH}", insert_many, BATCH)
        for connection in connections:
            await connection.execute("SET synchronous_commit = off")
        return [waiting, await measured("insert, without waiting", insert), batched]


def show(units: Sequence[Unit], each_subject: float) -> None:
    """Print the results for people."""
    print(f"{'':<32}{'alone, ms':^24}{f'{SENDERS} senders':^24}")
    print(f"{'':<32}{'p50':>8}{'server':>8}{'sender':>8}{'a second':>10}{'server':>8}{'sender':>8}")
    for unit in units:
        print(
            f"{unit.name:<32}{unit.alone_ms:8.3f}{unit.alone.server:8.3f}"
            f"{unit.alone.sender:8.3f}{unit.per_second:10.0f}{unit.loaded.server:8.3f}"
            f"{unit.loaded.sender:8.3f}"
        )
    print(f"memory of a server for each subject: {each_subject:.0f} bytes")


async def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Costs of operations on NATS and Postgres.")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--json", action="store_true")
    wanted = parser.parse_args()
    units: list[Unit] = []
    with two_cores():
        for size, sync in NATS:
            with tempfile.TemporaryDirectory(prefix="pml-bench-") as folder:
                units.append(await stream_unit(Path(folder), size, sync, wanted.seconds))
        with tempfile.TemporaryDirectory(prefix="pml-bench-") as folder:
            each_subject = await subject_bytes(Path(folder))
        with reachable_folder() as folder:
            units += await postgres_units(folder, wanted.seconds)
    if wanted.json:
        found = [asdict(unit) for unit in units]
        print(json.dumps({"units": found, "bytes_per_subject": each_subject}))
    else:
        show(units, each_subject)


if __name__ == "__main__":
    asyncio.run(main())
