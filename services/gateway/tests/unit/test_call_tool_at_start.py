"""Calls that arrive before their MCP server has listed its tools, as after a restart."""

import asyncio
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import cast
from uuid import uuid4

import pytest

from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.contracts.dns import RecordPage
from pml_common.contracts.gateway import CallTool, ToolOutcome
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_gateway.adapters.tool_router import ToolRouter
from pml_gateway.application.run_cache import RunCache
from pml_gateway.application.server_listings import wait_until_listed
from pml_gateway.application.tool_calls import ToolCalls
from pml_gateway.domain.tool_calls.ledger import Entry, fingerprint
from pml_gateway.entrypoints.mcp.tools import McpTools
from pml_gateway.ports import AgentApi, Caller, CallOrigin, ServerStatus
from services.gateway.tests.support.builders import AT, READ, WRITE, finished, workflow
from services.gateway.tests.support.calling import RunningWorkflows, call, keep, running, tool_calls
from services.gateway.tests.support.fake_stores import FakeLedger
from services.gateway.tests.support.offering import StubOffers

CONNECTING = ServerStatus(state="connecting", error=None, tools=0, since=AT)
AWAY = replace(CONNECTING, state="failed", error="cannot connect")


@dataclass
class Server:
    """One server, `fs`, with a given status."""

    now: ServerStatus = CONNECTING
    listed: tuple[ToolDefinition, ...] = ()
    calls: list[str] = field(default_factory=list[str])
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    hinder: asyncio.Event = field(default_factory=asyncio.Event)

    async def call(
        self, tool_id: str, args: JsonObject, timeout_s: float, origin: CallOrigin
    ) -> ToolOutcome:
        self.calls.append(tool_id)
        return ToolOutcome(status="ok", result="read")

    def list_tools(self) -> Mapping[str, tuple[ToolDefinition, ...]]:
        return {"fs": self.listed}

    def status(self) -> Mapping[str, ServerStatus]:
        return {"fs": self.now}

    async def reach(self, server: str, timeout_s: float) -> None:
        """Wait until it lists its tools or has failed."""
        self.reached.set()
        await self.hinder.wait()

    def lists(self, tool: ToolDefinition) -> None:
        """List its tools."""
        self.now, self.listed = replace(CONNECTING, state="ready", tools=1), (tool,)
        self.hinder.set()


def calls_on(server: Server) -> ToolCalls:
    return tool_calls(server)


@pytest.mark.parametrize("tool", [READ, WRITE])
@pytest.mark.parametrize("stands", [CONNECTING, AWAY])
async def test_a_call_waits_until_its_server_has_told_its_tools(
    tool: ToolDefinition, stands: ServerStatus
) -> None:
    server = Server(stands)
    calls = calls_on(server)
    asking = asyncio.create_task(calls.on_call_tool(call(workflow(), tool)))
    await asyncio.wait_for(server.reached.wait(), PATIENCE_S)
    server.lists(tool)
    assert (await asking).result == "read"
    assert server.calls == [tool.tool_id]


@pytest.mark.parametrize("stands", [CONNECTING, AWAY])
async def test_a_call_of_a_server_that_does_not_come_is_not_denied(stands: ServerStatus) -> None:
    server = Server(stands)
    server.hinder.set()
    outcome = await calls_on(server).on_call_tool(call(workflow()))
    assert outcome.status == "tool_error"
    assert "MCP server 'fs' is not connected" in str(outcome.message)
    assert server.calls == []


async def test_a_second_try_that_finds_no_server_leaves_the_first_as_it_is() -> None:
    server = Server(AWAY)
    server.hinder.set()
    asked = call(workflow()).model_copy(update={"attempt": "again"})
    outcome = await calls_on(server).on_call_tool(asked)
    assert outcome.status == "unknown"
    assert "othing was called" not in str(outcome.message)


async def test_a_call_that_was_begun_before_the_restart_is_not_told_as_never_made() -> None:
    server, ledger, asked = Server(AWAY), FakeLedger(), call(running(workflow()), WRITE)
    server.hinder.set()
    begun = Entry(fingerprint(asked), uuid4(), AT, repeatable=False)
    assert await ledger.begin(asked, begun) is None
    outcome = await tool_calls(server, ledger).on_call_tool(asked)
    assert outcome.status == "unknown"
    assert "othing was called" not in str(outcome.message)


async def test_a_call_whose_run_ends_while_it_waits_is_not_made() -> None:
    server, runs, run = Server(CONNECTING), RunCache(RunningWorkflows()), running(workflow())
    asked = call(run, WRITE)
    asking = asyncio.create_task(tool_calls(server, runs=runs).on_call_tool(asked))
    await asyncio.wait_for(server.reached.wait(), PATIENCE_S)
    keep(replace(run, state="failed"))
    await runs.on_end(finished(run))
    server.lists(WRITE)
    assert (await asking).status == "refused"
    assert server.calls == []


@dataclass
class Slow(FakeLedger):
    """A ledger that takes all the time a call has."""

    def __post_init__(self) -> None:
        super().__init__()

    async def begin(self, call: CallTool, entry: Entry) -> Entry | None:
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), call.timeout_s)
        return await super().begin(call, entry)


async def test_without_time_left_nothing_is_sent() -> None:
    server = Server()
    server.lists(WRITE)
    asked = call(workflow(), WRITE).model_copy(update={"timeout_s": 0.01})
    outcome = await tool_calls(server, Slow()).on_call_tool(asked)
    assert (outcome.status, server.calls) == ("timeout", [])
    assert "Nothing was called" in str(outcome.message)


@dataclass
class ListsMeanwhile(FakeLedger):
    """A ledger during whose query the server lists its tools."""

    server: Server

    def __post_init__(self) -> None:
        super().__init__()

    async def find(self, call: CallTool) -> Entry | None:
        self.server.lists(READ)
        return await super().find(call)


async def test_a_listing_that_comes_while_the_ledger_is_asked_denies_no_call() -> None:
    server = Server(CONNECTING)
    server.hinder.set()
    calls = tool_calls(server, ListsMeanwhile(server))
    outcome = await calls.on_call_tool(call(workflow()))
    assert outcome.status != "refused"


@pytest.mark.parametrize(
    "status",
    [replace(CONNECTING, state="ready"), replace(CONNECTING, tools=3), replace(AWAY, tools=3)],
)
async def test_a_tool_that_its_server_does_not_list_is_refused(status: ServerStatus) -> None:
    server = Server(status)
    outcome = await calls_on(server).on_call_tool(call(workflow()))
    assert outcome.status == "refused"
    assert server.calls == []


async def test_a_direct_call_waits_for_the_server_that_its_name_begins_with() -> None:
    server = Server(CONNECTING)
    router = ToolRouter([server])
    waiting = asyncio.create_task(wait_until_listed("fs_read", router, PATIENCE_S))
    await asyncio.wait_for(server.reached.wait(), PATIENCE_S)
    assert not waiting.done()
    server.lists(READ)
    assert await waiting
    assert not await wait_until_listed("fs_read", router, PATIENCE_S), "it has told its tools"


@pytest.mark.parametrize("name", ["git_log", "fs", "fsx_read", "pml_execute"])
async def test_a_direct_call_of_nobodys_tool_waits_for_nobody(name: str) -> None:
    assert not await wait_until_listed(name, ToolRouter([Server(CONNECTING)]), PATIENCE_S)


@dataclass
class Late:
    """Lists its tools only after a caller has waited for them."""

    listed: tuple[ToolDefinition, ...] = ()
    waits: int = 0

    async def list_tools(self, scope: Scope) -> Sequence[ToolDefinition]:
        return self.listed

    async def until_listed(self, tool: str, within_s: float) -> bool:
        self.waits += 1
        self.listed = (READ,) if tool == "fs_read" else ()
        return True

    def bare_servers(self) -> Set[str]:
        return set()

    def withheld(self, tool: str) -> str | None:
        return None

    def absent_server_of(self, tool: str) -> str | None:
        return "fs has failed"

    async def is_capability(self, caller: Caller, name: str) -> bool:
        return False

    async def named_capabilities(self, caller: Caller, cursor: str | None) -> RecordPage:
        return RecordPage(records=(), total=0)

    async def call_tool(
        self,
        scope: Scope,
        principal: str,
        tool_id: str,
        args: JsonObject,
        timeout_s: float,
        side: object,
    ) -> ToolOutcome:
        return ToolOutcome(status="ok", result=tool_id)


@pytest.mark.parametrize(("name", "fails"), [("fs_read", False), ("fs_write", True)])
async def test_a_direct_call_looks_once_more_when_it_has_waited(name: str, fails: bool) -> None:
    late = Late()
    calls = McpTools(cast("AgentApi", late), late, 5.0, StubOffers().shown)
    result = await calls.call(Caller(workflow().scope, "ann"), name, {})
    assert (bool(result.is_error), late.waits) == (fails, 1)
