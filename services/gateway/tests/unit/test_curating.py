"""`pml_curate_capabilities`: suggestions for the asking, names under the policy (AC4)."""

from collections.abc import Sequence
from typing import Any, cast
from uuid import uuid4

import pytest

from pml_common.contracts import catalog
from pml_common.contracts.curation import Curate
from pml_common.contracts.decision import Policy, PolicyRule
from pml_common.contracts.gateway import ToolOutcome
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
from pml_gateway.domain.api.errors import InvalidRequest
from pml_gateway.entrypoints.mcp.meta_tools import PML_CURATE_CAPABILITIES
from pml_gateway.ports import Caller, CallOrigin
from services.gateway.tests.support.builders import AT, SCOPE
from services.gateway.tests.support.dns import FakeDns, example
from services.gateway.tests.support.std import std_servers

NAMES: JsonObject = {
    "mode": "apply",
    "names": [{"capability_id": "00000000-0000-0000-0000-000000000007", "name": "fs:read"}],
}


class Executed:
    """Takes the programs that are executed."""

    def __init__(self) -> None:
        self.requests: list[ExecuteRequest] = []

    async def execute(
        self, scope: object, principal: str, request: ExecuteRequest, side: object
    ) -> ExecuteResponse:
        self.requests.append(request)
        return ExecuteResponse(status="approval_required")

    async def resume(self, *_: object) -> ExecuteResponse:
        return ExecuteResponse(status="running")


class Direct:
    """Calls tools at once."""

    def __init__(self, tools: ToolRouter) -> None:
        self._tools = tools

    async def call(
        self, caller: Caller, tool: ToolDefinition, args: JsonObject, timeout_s: float, *_: object
    ) -> ToolOutcome:
        origin = CallOrigin(caller, uuid4())
        return await self._tools.call(tool.tool_id, args, timeout_s, origin)


async def unheard(server: str, tools: Sequence[ToolDefinition]) -> None:
    """Take an announcement that nobody waits for."""


async def curated(
    args: JsonObject, policy: Policy | None = None
) -> tuple[dict[str, Any], FakeDns, Executed]:
    """Call the tool; return its result, what the registry was asked, and what was executed."""
    bus, executed, present = MemoryBus(), Executed(), policy or Policy()
    dns = FakeDns(bus)
    await dns.start()
    servers = std_servers(bus)
    await servers.announce(unheard)
    tools = ToolRouter([servers])
    agents = Agents(
        cast("Execution", executed),
        cast("DirectCalls", Direct(tools)),
        bus,
        tools,
        lambda _: present,
        5.0,
        cast("Results", None),
        cast("Cancellations", None),
        lambda: AT,
        Elicitations(*cast("Any", (None,) * 4)),
    )
    result = await PML_CURATE_CAPABILITIES.call(agents, Caller(SCOPE, "mira"), args)
    return result, dns, executed


async def test_ac04_names_are_suggested_at_once() -> None:
    result, dns, executed = await curated({"min_usage": 2})
    assert result["structuredContent"] == example(catalog.CURATE).model_dump(mode="json")
    assert dns.asked == [Curate(scope=SCOPE, principal="mira", min_usage=2)]
    assert executed.requests == []


@pytest.mark.parametrize("args", [NAMES, {"mode": "auto"}])
async def test_ac04_names_are_given_on_approval(args: JsonObject) -> None:
    result, dns, executed = await curated(args)
    assert result["isError"]
    assert dns.asked == []
    (request,) = executed.requests
    assert request.code == 'return await mcp.call("learn:curate", args);'
    assert request.args == args


async def test_ac04_names_are_given_at_once_where_the_policy_allows_it() -> None:
    policy = Policy(rules=(PolicyRule(pattern="learn:curate", verdict="allow"),))
    result, dns, executed = await curated(NAMES, policy)
    assert result["structuredContent"] == example(catalog.CURATE).model_dump(mode="json")
    (asked,) = dns.asked
    assert isinstance(asked, Curate)
    assert (asked.mode, asked.principal, len(asked.names)) == ("apply", "mira", 1)
    assert executed.requests == []


async def test_a_policy_that_denies_it_denies_suggestions_too() -> None:
    policy = Policy(rules=(PolicyRule(pattern="learn:*", verdict="deny"),))
    result, dns, _ = await curated({}, policy)
    assert result["isError"]
    assert "denies" in str(result["content"])
    assert dns.asked == []


async def test_ac04_what_is_wrong_with_a_choice_is_said() -> None:
    with pytest.raises(InvalidRequest, match="give `names` for the mode `apply`"):
        await curated({"mode": "apply"})
