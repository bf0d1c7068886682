"""Direct calls of tools: the time they may take, and names that are no tool's."""

from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest
from typing_extensions import override

from pml_common.bus.errors import QueryFailed
from pml_common.bus.memory import MemoryBus
from pml_common.contracts import catalog
from pml_common.contracts.capability import CapabilityRecord
from pml_common.contracts.decision import Policy, PolicyRule
from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.registry import ResolveCapability
from pml_common.contracts.tool import JsonObject
from pml_gateway.adapters.tool_router import ToolRouter
from pml_gateway.application.agents import Agents
from pml_gateway.application.execute import Execution
from pml_gateway.domain.api.api import ExecuteRequest, ExecuteResponse
from pml_gateway.ports import Caller, CallOrigin
from services.gateway.tests.support.builders import AT, SCOPE
from services.gateway.tests.support.dns import example
from services.gateway.tests.support.harness import READY, FakeServers

ALLOWED = Policy(rules=(PolicyRule(pattern="fs:*", verdict="allow"),))


@dataclass
class TimedServers(FakeServers):
    """Records the time of each call."""

    times: list[float] = field(default_factory=list[float])

    @override
    async def call(
        self, tool_id: str, args: JsonObject, timeout_s: float, origin: CallOrigin
    ) -> ToolOutcome:
        self.times.append(timeout_s)
        return await super().call(tool_id, args, timeout_s, origin)


@dataclass
class Executed:
    """Takes the programs that are executed."""

    max_timeout_s: float = 300.0
    times: list[float | None] = field(default_factory=list[float | None])

    async def execute(
        self, scope: object, principal: str, request: ExecuteRequest
    ) -> ExecuteResponse:
        self.times.append(request.timeout)
        return ExecuteResponse(status="approval_required")


@pytest.mark.parametrize(("limit", "time"), [(None, 60.0), (90.0, 95.0), (900.0, 300.0)])
async def test_a_direct_call_may_take_the_time_of_its_server(
    limit: float | None, time: float
) -> None:
    servers = TimedServers(stands={"fs": replace(READY, timeout_s=limit)})
    for policy in (ALLOWED, Policy()):
        executed = Executed()
        run = cast("Execution", executed)
        agents = Agents(
            run, MemoryBus(), ToolRouter([servers]), lambda _, it=policy: it, 60.0, lambda: AT
        )
        await agents.call_tool(SCOPE, "ann", "fs:write", {}, 60.0)
        assert [*servers.times, *executed.times] == [time]
        servers.times.clear()


@pytest.mark.parametrize(("name", "known"), [("fs:tidy", True), ("fs:nothing", False)])
async def test_the_registry_is_asked_whether_a_name_is_a_capability(name: str, known: bool) -> None:
    bus = MemoryBus()

    async def resolve(query: ResolveCapability) -> CapabilityRecord:
        if query.reference != "fs:tidy" or query.principal != "ann":
            raise QueryFailed("not_found", f"no capability {query.reference}")
        return example(cast(Any, catalog.RESOLVE_CAPABILITY))

    await bus.serve(catalog.RESOLVE_CAPABILITY, resolve)
    run = cast("Execution", Executed())
    tools = ToolRouter([FakeServers()])
    agents = Agents(run, bus, tools, lambda _: Policy(), 60.0, lambda: AT)
    assert await agents.is_capability(Caller(SCOPE, "ann"), name) is known
