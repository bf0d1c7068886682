"""Gateways of two scopes on one bus: each scope's calls reach its own servers, and no other's."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus.errors import QueryFailed
from pml_common.bus.identity import all_services_identity
from pml_common.bus.nats_bus import NatsBus
from pml_common.contracts import catalog
from pml_common.contracts.gateway import CallTool, ToolOutcome
from pml_common.contracts.scope import Scope
from pml_executor.adapters.gateway_tools import GatewayTools
from pml_local.ports import free_port
from services.gateway.tests.integration.gateways import (
    gateway,
    gateway_process,
    listed_tools,
    process_environment,
    servers_file,
    stored_call,
)
from services.gateway.tests.integration.mcp.harness import ServerHarness
from services.gateway.tests.support.builders import ELSEWHERE, SCOPE

pytestmark = pytest.mark.integration

SCOPES = SCOPE, ELSEWHERE
ROUNDS = 100
"""Calls of each of the two scopes, which alternate."""


class Site:
    """One scope: its gateway, and a server whose tool counts the calls it gets by the name of the
    scope that they are of. The gateway runs here, or as a process that can be killed."""

    def __init__(self, scope: Scope, nats_url: str, dsn: str, folder: Path) -> None:
        folder.mkdir()
        self.scope, self._nats_url, self._dsn = scope, nats_url, dsn
        self._box, self._stack, self._folder = ServerHarness(folder), AsyncExitStack(), folder
        servers = {"box": self._box.stdio().model_dump(include={"command", "args", "trust"})}
        self._file = servers_file(folder, servers)

    async def start(self) -> None:
        """Run the gateway in this process until `stop`."""
        chosen = {"gateway_org": self.scope.org, "gateway_project": self.scope.project}
        here = gateway(self._nats_url, self._dsn, mcp_servers=self._file, **chosen)
        await self._stack.enter_async_context(here)

    async def start_process(self) -> None:
        """Run the gateway in a process of its own, which `stop` kills (-9)."""
        environment = process_environment(
            self._nats_url,
            self._dsn,
            free_port(),
            self._folder,
            PML_MCP_SERVERS=str(self._file),
            PML_GATEWAY_ORG=self.scope.org,
            PML_GATEWAY_PROJECT=self.scope.project,
        )
        await self._stack.enter_async_context(gateway_process(environment))

    async def stop(self) -> None:
        """End the gateway."""
        await self._stack.aclose()

    async def call(self, bus: NatsBus) -> CallTool:
        """Store a run and build its call, of a tool that may not be called again."""
        tools = await eventually(lambda: listed_tools(bus, self.scope))
        made = await stored_call(self._dsn, tools["count"], {"key": str(self.scope)}, self.scope)
        return made.model_copy(update={"timeout_s": PATIENCE_S})

    @property
    def counted(self) -> list[str]:
        """The scopes of the calls that the server got."""
        return [line for line in self._box.lines() if line in map(str, SCOPES)]


@dataclass
class Two:
    """Two scopes and an executor's bus."""

    sites: tuple[Site, Site]
    bus: NatsBus

    async def calls(self) -> tuple[CallTool, CallTool]:
        """Build a run's call in each."""
        first, second = self.sites
        return await first.call(self.bus), await second.call(self.bus)


@pytest.fixture
async def two(nats_url: str, gateway_dsn: str, tmp_path: Path) -> AsyncGenerator[Two]:
    first, second = (Site(each, nats_url, gateway_dsn, tmp_path / each.org) for each in SCOPES)
    bus = await NatsBus.connect(nats_url, service="executor", identity=all_services_identity())
    yield Two((first, second), bus)
    await asyncio.gather(first.stop(), second.stop())
    await bus.drain()


async def test_no_call_crosses_and_those_of_an_absent_gateway_wait_for_it(two: Two) -> None:
    tools, (first, second) = GatewayTools(two.bus), two.sites
    await asyncio.gather(first.start(), second.start())
    calls = await two.calls()
    for number in range(ROUNDS):
        for asked in calls:
            outcome = await tools.call(asked.model_copy(update={"occurrence": number}))
            assert outcome.result == "counted", outcome
    assert [site.counted for site in two.sites] == [[str(each)] * ROUNDS for each in SCOPES]
    await first.stop()
    late, other = (each.model_copy(update={"occurrence": ROUNDS}) for each in calls)
    waiting = asyncio.create_task(tools.call(late))
    assert await eventually(tools.check) == f"calls wait, for no gateway serves {SCOPE}"
    assert (await tools.call(other)).result == "counted"
    moved = replace(catalog.CALL_TOOL, scoped=False)
    with pytest.raises(QueryFailed, match="no replica is running"):
        await two.bus.request(moved, late)
    assert not waiting.done()
    await first.start()
    assert (await waiting).result == "counted"
    assert await tools.check() is None
    counts = [[str(each)] * (ROUNDS + 1) for each in SCOPES]
    assert [site.counted for site in (first, second)] == counts


@pytest.mark.nightly
async def test_none_crosses_while_the_gateways_are_killed(two: Two) -> None:
    tools, made = GatewayTools(two.bus), dict[Scope, list[ToolOutcome]]()
    await asyncio.gather(*(site.start_process() for site in two.sites))

    async def load(asked: CallTool) -> None:
        outcomes = made.setdefault(asked.scope, [])
        for number in range(ROUNDS):
            outcomes.append(await tools.call(asked.model_copy(update={"occurrence": number})))

    kills = 3

    async def kill(site: Site, of: Scope) -> None:
        for number in range(1, kills + 1):
            await eventually(
                lambda due=number * ROUNDS // (kills + 1): len(made.get(of, ())) >= due
            )
            await site.stop()
            await site.start_process()

    async with asyncio.TaskGroup() as work:
        for site, asked in zip(two.sites, await two.calls(), strict=True):
            work.create_task(load(asked))
            work.create_task(kill(site, asked.scope))
    for site in two.sites:
        counted, outcomes = site.counted, made[site.scope]
        certain = [each for each in outcomes if each.status == "ok"]
        assert {*counted} == {str(site.scope)}
        assert len(outcomes) == ROUNDS
        assert len(certain) <= len(counted) <= ROUNDS
        # Unknown is at most what a killed gateway was making.
        assert [each.status for each in outcomes].count("unknown") <= kills
        assert {each.status for each in outcomes} <= {"ok", "unknown"}
