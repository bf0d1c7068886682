"""CPU time of a message at a steady rate: published only, handled one by one, and in batches.

Milliseconds of this process (publisher and consumer) and of a fresh server, for each message. The
difference to the first line is what handling costs.
`uv run python bench/consume.py [messages] [a second]`
"""

import asyncio
import secrets
import sys
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from time import process_time
from uuid import uuid4

sys.path.insert(0, str(Path(__file__).parent.parent))  # when run as a script

from execution.processor import own

from pml_common.bus.identity import all_services_identity
from pml_common.bus.nats_bus import NatsBus
from pml_common.bus.port import Handled
from pml_common.bus.streams import StreamSettings
from pml_common.contracts import catalog
from pml_common.contracts.base import Message
from pml_common.contracts.catalog import Batch, Service
from pml_common.contracts.gateway import ToolsListed
from pml_common.contracts.scope import Scope
from pml_local.nats import NatsServer
from pml_local.parts import start_part

SCOPE = Scope(org="acme", project="webapp")
ALONE = catalog.REGISTRY_ON_TOOLS_LISTED
TOGETHER = replace(ALONE, batch=Batch())
WARM_UP = 100


class Counted:
    """Handlers that count."""

    def __init__(self) -> None:
        self._count = 0
        self._awaited = 0
        self._reached = asyncio.Event()

    async def one(self, message: ToolsListed) -> Sequence[Message]:
        self._add(1)
        return []

    async def many(self, messages: Sequence[ToolsListed]) -> Handled:
        self._add(len(messages))
        return Handled()

    def _add(self, handled: int) -> None:
        self._count += handled
        if self._count >= self._awaited:
            self._reached.set()

    async def reached(self, count: int) -> None:
        """Wait until so many were handled."""
        self._awaited = count
        self._reached.clear()
        self._add(0)
        await self._reached.wait()


@asynccontextmanager
async def connected(url: str, service: Service) -> AsyncGenerator[NatsBus]:
    bus = await NatsBus.connect(url, service=service, identity=all_services_identity())
    try:
        yield bus
    finally:
        await bus.drain()


async def publish(bus: NatsBus, count: int, pause_s: float) -> None:
    for _ in range(count):
        message = ToolsListed(event_id=uuid4(), scope=SCOPE, server="fs", tools=())
        await asyncio.gather(bus.publish(message), asyncio.sleep(pause_s))


async def measure(how: str, messages: int, pause_s: float) -> None:
    """Print one line."""
    with tempfile.TemporaryDirectory(prefix="pml-bench-") as folder:
        server = NatsServer(
            Path(folder) / "nats",
            Path(folder) / "log",
            secrets.token_hex(),
            streams=StreamSettings(),
        )
        process = await start_part(server)
        try:
            async with connected(server.url, "gateway") as sender:
                await publish(sender, WARM_UP, 0.0)
                async with connected(server.url, "registry") as owner:
                    handled = Counted()
                    if how == "one by one":
                        await owner.consume(ALONE, handled.one)
                    elif how == "in batches":
                        await owner.consume_batches(TOGETHER, handled.many)
                    await handled.reached(0 if how == "published only" else WARM_UP)
                    before = process_time(), own(process.pid)
                    await publish(sender, messages, pause_s)
                    await handled.reached(0 if how == "published only" else WARM_UP + messages)
                ours = (process_time() - before[0]) * 1e3 / messages
                theirs = (own(process.pid) - before[1]) / messages
                print(f"{how:<16} ours {ours:6.3f}   server {theirs:6.3f}")
        finally:
            await process.kill()


async def main() -> None:
    """Measure each way of handling."""
    messages = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    pause_s = 1 / (float(sys.argv[2]) if len(sys.argv) > 2 else 100.0)
    for how in ("published only", "one by one", "in batches"):
        await measure(how, messages, pause_s)


asyncio.run(main())
