"""Operations that REST and MCP offer to agents alike."""

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final
from uuid import UUID, uuid4

from typing_extensions import override

from pml_common.bus.port import QueryClient
from pml_common.contracts import catalog
from pml_common.contracts.decision import Policy
from pml_common.contracts.dns import QueryRecords, RecordPage
from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.registry import Discover, DiscoveryPage, ResolveCapability
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_gateway.application.cancel import Cancellations
from pml_gateway.application.dependency_errors import as_api_errors
from pml_gateway.application.direct_calls import DirectCalls
from pml_gateway.application.elicit import Elicitations
from pml_gateway.application.execute import Execution
from pml_gateway.application.results import Results
from pml_gateway.application.server_listings import (
    absent_server_of,
    bare_servers,
    wait_until_announced,
    wait_until_listed,
)
from pml_gateway.domain.api.api import ExecuteRequest, ExecuteResponse
from pml_gateway.domain.api.capability_tools import callable_ones
from pml_gateway.domain.api.curation import CurateNames
from pml_gateway.domain.api.errors import InvalidRequest, NotFound
from pml_gateway.domain.api.mcp_tools import did_you_mean
from pml_gateway.domain.api.task_results import GetTaskResult
from pml_gateway.domain.workflow.cancellation import Cancel
from pml_gateway.domain.workflow.direct_call import program_of_call
from pml_gateway.ports import (
    HERE,
    AgentApi,
    AllowedTools,
    Caller,
    CallerSide,
    CallOrigin,
    KnownTools,
)

_CURATE: Final = "learn:curate"
_PAGE: Final = 200
_MARGIN_S: Final = 5.0
"""Time beside a server's own limit of its calls: to wait for its turn, say."""


@dataclass(frozen=True)
class Agents(AgentApi, AllowedTools):
    """Executes requests and calls tools under the policy of the caller's scope."""

    execution: Execution
    direct: DirectCalls
    query_client: QueryClient
    tools: KnownTools
    policy_of: Callable[[Scope], Policy]
    default_timeout_s: float
    results: Results
    cancellations: Cancellations
    now: Callable[[], datetime]
    elicitations: Elicitations

    @override
    async def execute(
        self, scope: Scope, principal: str, request: ExecuteRequest, side: CallerSide = HERE
    ) -> ExecuteResponse:
        with as_api_errors():
            await wait_until_announced(
                request, self.tools, request.timeout or self.default_timeout_s
            )
            caller = Caller(scope, principal)
            begin = partial(self.execution.execute, scope, principal, request, side)
            resume = partial(self.execution.resume, caller)
            return await self.elicitations.around(caller, side, begin, resume)

    @override
    async def result(
        self, caller: Caller, asked: GetTaskResult, side: CallerSide = HERE
    ) -> ExecuteResponse:
        async def begin() -> ExecuteResponse:
            if await self.elicitations.asks(caller, asked.workflow_id, side):
                return await self.results.get(caller, asked.model_copy(update={"wait_s": 0}))
            return await self.results.get(caller, asked)

        async def resume(workflow_id: UUID, side: CallerSide) -> ExecuteResponse:
            return await self.results.get(caller, asked)

        with as_api_errors():
            return await self.elicitations.around(caller, side, begin, resume)

    @override
    async def stop(self, caller: Caller, workflow_id: UUID, reason: str | None) -> ExecuteResponse:
        with as_api_errors():
            return await self.cancellations.stop(caller, workflow_id, Cancel(reason=reason))

    @override
    async def discover(self, query: Discover) -> DiscoveryPage:
        with as_api_errors():
            allowed = query.model_copy(update={"policy": self.policy_of(query.scope)})
            page = await self.query_client.request(catalog.DISCOVER, allowed)
            return page.model_copy(update={"discovery_id": uuid4()})

    @override
    async def query_records(self, query: QueryRecords) -> RecordPage:
        with as_api_errors():
            return await self.query_client.request(catalog.QUERY_RECORDS, query)

    @override
    async def curate(
        self, scope: Scope, principal: str, request: CurateNames, side: CallerSide = HERE
    ) -> ToolOutcome | ExecuteResponse:
        args = request.model_dump(mode="json", exclude_unset=True)
        tool, timeout_s = self.tools.find(_CURATE), self.default_timeout_s
        denied = tool is None or self.policy_of(scope).verdict_on(tool, args)[0] == "deny"
        if denied or request.mode != "suggest":
            return await self.call_tool(scope, principal, _CURATE, args, timeout_s, side)
        # Suggestions change nothing that a person would be asked about.
        origin = CallOrigin(Caller(scope, principal), uuid4())
        return await self.tools.call(_CURATE, args, timeout_s, origin)

    @override
    async def call_tool(
        self,
        scope: Scope,
        principal: str,
        tool_id: str,
        args: JsonObject,
        timeout_s: float,
        side: CallerSide = HERE,
    ) -> ToolOutcome | ExecuteResponse:
        asker = side.asker
        if asker is not None and asker.given is not None:
            caller = Caller(scope, principal)
            resume = partial(self.execution.resume, caller)
            with as_api_errors():
                return await self.elicitations.resumed(caller, side, asker, asker.given, resume)
        tool = self.tools.find(tool_id)
        if tool is None:
            if (why := self.tools.withheld(tool_id)) is not None:
                return ToolOutcome(status="refused", message=why)
            known = [each.tool_id for each in await self.list_tools(scope)]
            raise NotFound(f"no tool {tool_id}{did_you_mean(tool_id, known)}")
        limit_s = self.tools.status()[tool.server].timeout_s
        if limit_s is not None:
            timeout_s = min(limit_s + _MARGIN_S, self.execution.max_timeout_s)
        policy = self.policy_of(scope)
        match policy.verdict_on(tool, args, is_all=True)[0]:
            case "allow":
                caller = Caller(scope, principal)
                with as_api_errors():
                    return await self.direct.call(caller, tool, args, timeout_s, side, policy)
            case "deny":
                return ToolOutcome(status="refused", message=f"the policy denies {tool_id}")
            case "ask":
                program = program_of_call(tool_id)
                runs_for = None if limit_s is None else timeout_s
                request = ExecuteRequest(code=program, args=args, timeout=runs_for)
                return await self.execute(scope, principal, request, side)

    @override
    def bare_servers(self) -> Set[str]:
        return bare_servers(self.tools)

    @override
    async def until_listed(self, tool: str, within_s: float) -> bool:
        return await wait_until_listed(tool, self.tools, within_s)

    @override
    def withheld(self, tool: str) -> str | None:
        named = (tool, *(f"{server}:{tool}" for server in sorted(self.bare_servers())))
        return next((why for one in named if (why := self.tools.withheld(one)) is not None), None)

    @override
    def absent_server_of(self, tool: str) -> str | None:
        return absent_server_of(tool, self.tools, self.now())

    @override
    async def named_capabilities(self, caller: Caller, cursor: str | None) -> RecordPage:
        query = QueryRecords(
            scope=caller.scope,
            principal=caller.principal,
            include_parameters=True,
            sort="name",
            limit=_PAGE,
            cursor=cursor,
        )
        with as_api_errors():
            page = await self.query_client.request(catalog.QUERY_RECORDS, query)
        allowed = callable_ones(page.records, self.policy_of(caller.scope))
        return page.model_copy(update={"records": tuple(allowed)})

    @override
    async def is_capability(self, caller: Caller, name: str) -> bool:
        query = ResolveCapability(scope=caller.scope, principal=caller.principal, reference=name)
        try:
            with as_api_errors():
                await self.query_client.request(catalog.RESOLVE_CAPABILITY, query)
        except (NotFound, InvalidRequest):
            return False
        return True

    @override
    async def list_tools(self, scope: Scope) -> Sequence[ToolDefinition]:
        policy = self.policy_of(scope)
        listed = (tool for tools in self.tools.list_tools().values() for tool in tools)
        allowed = [tool for tool in listed if policy.verdict_on(tool)[0] != "deny"]
        return sorted(allowed, key=lambda tool: tool.tool_id)
