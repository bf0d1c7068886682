"""Cost of the bus over bare nats-py on a fresh server, in milliseconds: p50, p95, and CPU of this
process, which is both ends but not the server.

`uv run python bench/bus.py [rounds]`
"""

import asyncio
import secrets
import statistics
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from time import perf_counter, process_time
from uuid import uuid4

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext, api

from pml_common.bus.connection import flush, subscribe
from pml_common.bus.identity import all_services_identity
from pml_common.bus.nats_bus import NatsBus
from pml_common.bus.streams import StreamSettings
from pml_common.contracts import catalog
from pml_common.contracts.base import Message
from pml_common.contracts.gateway import ToolsListed
from pml_common.contracts.registry import ListTools, ToolCatalog
from pml_common.contracts.scope import Scope
from pml_local.nats import NatsServer
from pml_local.parts import start_part

SCOPE = Scope(org="acme", project="webapp")
WARM_UP = 50
Measured = Callable[[], Awaitable[float]]


def tools_listed(server: str = "fs") -> ToolsListed:
    return ToolsListed(event_id=uuid4(), scope=SCOPE, server=server, tools=())


async def took(work: Awaitable[object]) -> float:
    """Milliseconds until it is done."""
    began = perf_counter()
    await work
    return (perf_counter() - began) * 1e3


async def report(label: str, rounds: int, measure: Measured) -> None:
    """Measure and print one line."""
    for _ in range(WARM_UP):
        await measure()
    began = process_time()
    times = sorted([await measure() for _ in range(rounds)])
    cpu = (process_time() - began) * 1e3 / rounds
    p95 = times[int(len(times) * 0.95)]
    print(f"{label:<44} p50 {statistics.median(times):6.3f}   p95 {p95:6.3f}   CPU {cpu:6.3f}")


async def raw_floors(url: str, rounds: int) -> None:
    """The same operations with nats-py alone."""
    client, other = Client(), Client()
    await client.connect(url)
    await other.connect(url)
    js = JetStreamContext(client)
    await js.add_stream(  # pyright: ignore[reportUnknownMemberType] - its **params
        api.StreamConfig(name="RAW", subjects=["raw.>"], storage=api.StorageType.FILE)
    )
    body = tools_listed().model_dump_json().encode()

    async def publish() -> None:
        await js.publish("raw.a", body, headers={"Nats-Msg-Id": str(uuid4())})

    pull = await JetStreamContext(other).pull_subscribe("raw.b", durable="raw", stream="RAW")

    async def publish_and_fetch() -> float:
        fetching = asyncio.create_task(pull.fetch(1, timeout=5))
        await asyncio.sleep(0.002)  # the fetch request must arrive before the message
        began = perf_counter()
        await js.publish("raw.b", body)
        [message] = await fetching
        elapsed = (perf_counter() - began) * 1e3
        await message.ack()
        return elapsed

    async def answer(message: Msg) -> None:
        await message.respond(b"{}")

    await subscribe(other, "raw.q", answer)
    await flush(other)
    await report("raw: awaited JetStream publish", rounds, lambda: took(publish()))
    await report("raw: publish to fetched, request standing", rounds, publish_and_fetch)
    await report("raw: request", rounds, lambda: took(client.request("raw.q", body, timeout=5)))
    await client.close()
    await other.close()


async def socket_figures(url: str, rounds: int, folder: Path) -> None:
    """A query over a socket."""

    async def connected(service: str) -> NatsBus:
        identity, sockets = all_services_identity(), {"registry": folder}
        return await NatsBus.connect(url, service=service, identity=identity, sockets=sockets)

    sender, owner = await connected("gateway"), await connected("registry")

    async def answer(question: ListTools) -> ToolCatalog:
        return ToolCatalog(tools=())

    async def ask() -> None:
        await sender.request(catalog.LIST_TOOLS, ListTools(scope=SCOPE))

    await owner.serve(catalog.LIST_TOOLS, answer)
    await report("bus: ask, over a socket", rounds, lambda: took(ask()))
    await sender.drain()
    await owner.drain()


async def bus_figures(url: str, rounds: int) -> None:
    """The operations as services use them."""
    sender = await NatsBus.connect(url, service="gateway", identity=all_services_identity())
    owner = await NatsBus.connect(url, service="registry", identity=all_services_identity())
    handled: asyncio.Queue[float] = asyncio.Queue()

    async def handle(message: ToolsListed) -> Sequence[Message]:
        handled.put_nowait(perf_counter())
        return []

    async def answer(question: ListTools) -> ToolCatalog:
        return ToolCatalog(tools=())

    async def publish_and_handle() -> float:
        began = perf_counter()
        await sender.publish(tools_listed())
        return (await handled.get() - began) * 1e3

    async def ask() -> None:
        await sender.request(catalog.LIST_TOOLS, ListTools(scope=SCOPE))

    async def history(entity: str) -> None:
        await sender.history(SCOPE, entity, of=catalog.TOOLS_LISTED)

    async def whole_history(entity: str) -> None:
        await sender.history(SCOPE, entity)

    await report("bus: publish", rounds, lambda: took(sender.publish(tools_listed())))
    await owner.consume(catalog.REGISTRY_ON_TOOLS_LISTED, handle)
    for _ in range(rounds + WARM_UP):
        await handled.get()
    await report("bus: publish to handled", rounds, publish_and_handle)
    await owner.serve(catalog.LIST_TOOLS, answer)
    await report("bus: ask", rounds, lambda: took(ask()))
    for _ in range(50):
        await sender.publish(tools_listed("fifty"))
    for entity in ("nobody", "fifty"):
        await report(f"bus: history of {entity}", rounds, lambda e=entity: took(history(e)))
        await report(
            f"bus: history of {entity}, all owners", rounds, lambda e=entity: took(whole_history(e))
        )
    await sender.drain()
    await owner.drain()


async def main() -> None:
    """Start a server, measure, stop it."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    with tempfile.TemporaryDirectory(prefix="pml-bench-") as folder:
        server = NatsServer(
            Path(folder) / "nats",
            Path(folder) / "log",
            secrets.token_hex(),
            streams=StreamSettings(),
        )
        process = await start_part(server)
        try:
            await raw_floors(server.url, rounds)
            await bus_figures(server.url, rounds)
            await socket_figures(server.url, rounds, Path(folder) / "sockets")
        finally:
            await process.kill()


if __name__ == "__main__":
    asyncio.run(main())
