"""Tool calls over the sockets of real gateways that are killed, suspended or started together."""

import asyncio
import signal
from asyncio.subprocess import Process
from collections import Counter
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus.connection import flush, subscribe
from pml_common.bus.identity import all_services_identity
from pml_common.bus.names import query_subject
from pml_common.bus.nats_bus import NatsBus
from pml_common.contracts.catalog import CALL_TOOL
from pml_common.contracts.gateway import CallTool
from pml_common.contracts.tool import JsonObject
from pml_executor.adapters.gateway_tools import GatewayTools
from pml_gateway.domain.tool_calls.ledger import LOST
from pml_local.ports import free_port
from services.gateway.tests.integration.gateways import (
    gateway_process,
    listed_tools,
    process_environment,
    servers_file,
    stored_call,
)
from services.gateway.tests.integration.mcp.harness import ServerHarness

pytestmark = [pytest.mark.integration, pytest.mark.nightly]


class Site:
    """Gateways with one MCP server, `box`, and an executor's connection to them."""

    def __init__(self, nats_url: str, dsn: str, folder: Path) -> None:
        self.box = ServerHarness(folder)
        self.sockets = folder.joinpath(*["longer-than-an-address"] * 5) / "sockets"
        self._nats_url = nats_url
        self._dsn = dsn
        self._folder = folder
        server = self.box.stdio().model_dump(include={"command", "args", "trust"})
        self._servers = str(servers_file(folder, {"box": server}))

    def environment(self) -> dict[str, str]:
        """Return the environment of another gateway."""
        return process_environment(
            self._nats_url,
            self._dsn,
            free_port(),
            self._folder,
            PML_MCP_SERVERS=self._servers,
            PML_GATEWAY_SOCKETS=str(self.sockets),
        )

    async def executor(self) -> NatsBus:
        """Connect an executor."""
        return await NatsBus.connect(
            self._nats_url,
            service="executor",
            identity=all_services_identity(),
            sockets={"gateway": self.sockets},
        )

    async def call(self, bus: NatsBus, tool: str, args: JsonObject) -> CallTool:
        """Build a call of a new approved run."""
        tools = await eventually(lambda: listed_tools(bus))
        asked = await stored_call(self._dsn, tools[tool], args)
        return asked.model_copy(update={"timeout_s": 60.0, "asked_first_at": bus.now()})

    def listening(self) -> list[str]:
        """Return the names of the sockets."""
        return sorted(each.name for each in self.sockets.glob("*.sock"))


@pytest.fixture
def site(nats_url: str, gateway_dsn: str, tmp_path: Path) -> Site:
    """A machine without gateways."""
    return Site(nats_url, gateway_dsn, tmp_path)


@pytest.fixture
async def bus(site: Site) -> AsyncIterator[NatsBus]:
    """An executor's connection."""
    bus = await site.executor()
    yield bus
    await bus.drain(1.0)


@contextmanager
def suspended(process: Process) -> Generator[None]:
    """Suspend a process until the context exits."""
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


@pytest.fixture
async def over_nats(nats_url: str) -> AsyncIterator[list[str]]:
    """The replies' subjects of all tool calls that are requested over NATS."""
    client, seen = Client(), list[str]()

    async def note(message: Msg) -> None:
        seen.append(message.reply)

    await client.connect(nats_url)
    await subscribe(client, query_subject(CALL_TOOL), note)
    await flush(client)
    yield seen
    await client.close()


async def connected(site: Site, bus: NatsBus, over_nats: list[str]) -> None:
    """Make calls until they go over the socket."""

    async def over_socket() -> bool:
        before = len(over_nats)
        ended = await site.call(bus, "blocks", {"of": "text"})
        assert (await GatewayTools(bus).call(ended)).status == "ok"
        return len(over_nats) == before

    await eventually(over_socket)


async def test_a_gateway_that_is_killed_in_a_call_leaves_it_to_the_next(
    site: Site, bus: NatsBus, over_nats: list[str]
) -> None:
    tools = GatewayTools(bus, bus.outages)
    async with gateway_process(site.environment()) as first:
        await connected(site, bus, over_nats)
        before, left_behind = len(over_nats), site.listening()
        done = await site.call(bus, "count", {"key": "once"})
        assert (await tools.call(done)).result == "counted"
        lost = await site.call(bus, "slow", {"seconds": 60})
        calling = asyncio.create_task(tools.call(lost))
        await eventually(lambda: "slow began" in site.box.lines())
        assert len(over_nats) == before
        first.kill()
        await first.wait()
        await eventually(lambda: len(over_nats) > before)
    async with gateway_process(site.environment()):
        assert await asyncio.wait_for(calling, PATIENCE_S) == LOST
        again = done.model_copy(update={"asked_first_at": None})
        assert (await tools.call(again)).result == "counted"
        await connected(site, bus, over_nats)
        assert len(site.listening()) == 1
        assert site.listening() != left_behind
    made = Counter(site.box.lines())
    assert (made["once"], made["slow began"]) == (1, 1)


async def test_calls_at_a_suspended_gateway_are_made_by_another(
    site: Site, bus: NatsBus, over_nats: list[str]
) -> None:
    tools = GatewayTools(bus, bus.outages)
    async with (
        asyncio.timeout(3 * PATIENCE_S),
        gateway_process(site.environment()) as first,
        gateway_process(site.environment()),
    ):
        assert len(site.listening()) == 2
        await connected(site, bus, over_nats)
        keys = [f"call {number}" for number in range(6)]
        calls = [await site.call(bus, "count", {"key": key}) for key in keys]
        fresh = [each.model_copy(update={"asked_first_at": bus.now()}) for each in calls]
        with suspended(first):
            outcomes = await asyncio.gather(*map(tools.call, fresh))
        assert [outcome.result for outcome in outcomes] == ["counted"] * len(keys)
        repeated = [each.model_copy(update={"asked_first_at": None}) for each in calls]
        again = await asyncio.gather(*map(tools.call, repeated))
        assert [outcome.result for outcome in again] == ["counted"] * len(keys)
        first.terminate()  # it replies to the requests that waited for it
        assert await first.wait() == 0
    assert Counter(site.box.lines()) == dict.fromkeys(keys, 1)


async def test_gateways_that_start_at_once_are_both_reached(site: Site, bus: NatsBus) -> None:
    async with asyncio.TaskGroup() as tasks, asyncio.timeout(3 * PATIENCE_S):
        over = asyncio.Event()
        running = [tasks.create_task(_serve(site, over)) for _ in range(2)]
        await eventually(lambda: len(site.listening()) == 2)
        tools = GatewayTools(bus, bus.outages)
        for number in range(6):
            asked = await site.call(bus, "count", {"key": str(number)})
            assert (await tools.call(asked)).result == "counted"
        over.set()
        assert [await each for each in running] == [0, 0]
    assert site.listening() == []
    assert Counter(site.box.lines()) == {str(number): 1 for number in range(6)}


async def _serve(site: Site, over: asyncio.Event) -> int | None:
    async with gateway_process(site.environment()) as process:
        await over.wait()
        process.terminate()
        return await process.wait()
