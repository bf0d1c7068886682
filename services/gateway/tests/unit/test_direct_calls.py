"""Direct calls of tools: the time they may take, and names that are no tool's."""

from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from pml_common.bus.errors import QueryFailed
from pml_common.contracts import catalog
from pml_common.contracts.capability import CapabilityRecord
from pml_common.contracts.decision import Policy, PolicyRule
from pml_common.contracts.dns import QueryRecords, RecordPage
from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.registry import ResolveCapability
from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_common.testing.memory_bus import MemoryBus
from pml_gateway.adapters.tool_router import ToolRouter
from pml_gateway.application.agents import Agents
from pml_gateway.application.cancel import Cancellations
from pml_gateway.application.direct_calls import DirectCalls
from pml_gateway.application.elicit import Elicitations
from pml_gateway.application.execute import Execution
from pml_gateway.application.results import Results
from pml_gateway.domain.api.api import ExecuteRequest, ExecuteResponse
from pml_gateway.domain.api.errors import Conflict
from pml_gateway.ports import Caller
from services.gateway.tests.integration.mcp.served_endpoint import SORT, TIDY
from services.gateway.tests.support.builders import AT, SCOPE
from services.gateway.tests.support.dns import example
from services.gateway.tests.support.harness import READY, FakeServers

ALLOWED = Policy(rules=(PolicyRule(pattern="fs:*", verdict="allow"),))


@dataclass
class Called:
    """Takes the direct calls that are made."""

    times: list[float] = field(default_factory=list[float])

    async def call(
        self,
        caller: Caller,
        tool: ToolDefinition,
        args: JsonObject,
        timeout_s: float,
        side: object,
        policy: Policy,
    ) -> ToolOutcome:
        self.times.append(timeout_s)
        return ToolOutcome(status="ok", result=args)


@dataclass
class Executed:
    """Takes the programs that are executed."""

    max_timeout_s: float = 300.0
    times: list[float | None] = field(default_factory=list[float | None])

    async def execute(
        self, scope: object, principal: str, request: ExecuteRequest, side: object
    ) -> ExecuteResponse:
        self.times.append(request.timeout)
        return ExecuteResponse(status="approval_required")

    async def resume(self, *_: object) -> ExecuteResponse:
        return ExecuteResponse(status="running")


def agents_with(
    run: Execution,
    bus: MemoryBus,
    tools: ToolRouter,
    policy: Policy,
    direct: Called | None = None,
) -> Agents:
    """Build what answers direct calls; nothing is cancelled, and no result asked for."""
    return Agents(
        run,
        cast("DirectCalls", direct),
        bus,
        tools,
        lambda _: policy,
        60.0,
        cast("Results", None),
        cast("Cancellations", None),
        lambda: AT,
        Elicitations(*cast("Any", (None,) * 4)),
    )


@pytest.mark.parametrize(("limit", "time"), [(None, 60.0), (90.0, 95.0), (900.0, 300.0)])
async def test_a_direct_call_may_take_the_time_of_its_server(
    limit: float | None, time: float
) -> None:
    called, servers = Called(), FakeServers(stands={"fs": replace(READY, timeout_s=limit)})
    executed = Executed()
    run = cast("Execution", executed)
    for policy in (ALLOWED, Policy()):
        agents = agents_with(run, MemoryBus(), ToolRouter([servers]), policy, called)
        await agents.call_tool(SCOPE, "ann", "fs:write", {}, 60.0)
    assert called.times == [time]
    # A program of no limit of its own has the default one.
    assert executed.times == [time if limit else None]


@pytest.mark.parametrize(("name", "known"), [("fs:tidy", True), ("fs:nothing", False)])
async def test_the_registry_is_asked_whether_a_name_is_a_capability(name: str, known: bool) -> None:
    bus = MemoryBus()

    async def resolve(query: ResolveCapability) -> CapabilityRecord:
        if query.reference == "fs:changed":
            raise QueryFailed("conflict", "fs:changed is not as it was signed")
        if query.reference != "fs:tidy" or query.principal != "ann":
            raise QueryFailed("not_found", f"no capability {query.reference}")
        return example(cast(Any, catalog.RESOLVE_CAPABILITY))

    await bus.serve(catalog.RESOLVE_CAPABILITY, resolve)
    run = cast("Execution", Executed())
    tools = ToolRouter([FakeServers()])
    agents = agents_with(run, bus, tools, Policy())
    assert await agents.is_capability(Caller(SCOPE, "ann"), name) is known
    with pytest.raises(Conflict, match="is not as it was signed"):
        await agents.is_capability(Caller(SCOPE, "ann"), "fs:changed")


async def test_named_capabilities_are_asked_for_the_caller_with_their_parameters() -> None:
    bus = MemoryBus()
    asked: list[QueryRecords] = []

    async def query(query: QueryRecords) -> RecordPage:
        asked.append(query)
        return RecordPage(records=(TIDY, SORT), total=2, next_cursor="2")

    await bus.serve(catalog.QUERY_RECORDS, query)
    policy = Policy(rules=(PolicyRule(pattern="cap:fs:*", verdict="deny"),))
    agents = agents_with(cast("Execution", Executed()), bus, ToolRouter([FakeServers()]), policy)
    page = await agents.named_capabilities(Caller(SCOPE, "ann"), "1")
    assert (page.records, page.next_cursor) == ((SORT,), "2")
    (it,) = asked
    assert (it.principal, it.cursor, it.include_parameters) == ("ann", "1", True)
