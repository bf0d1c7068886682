"""MCP `tools/list` and `tools/call`: PML's own tools, and under the policy those of upstream
servers and named capabilities."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Final

from mcp import MCPError
from mcp_types import INVALID_PARAMS, CallToolResult, ListToolsResult, Tool

from pml_common.bus.errors import QueryFailed
from pml_common.contracts.display_names import capability_of_tool
from pml_common.contracts.dns import RecordPage
from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_common.errors import Retryable
from pml_gateway.domain.api.api import ExecuteRequest, ExecuteResponse
from pml_gateway.domain.api.capability_tools import capability_listing
from pml_gateway.domain.api.errors import (
    Busy,
    Conflict,
    Forbidden,
    InvalidRequest,
    NotFound,
    Unavailable,
)
from pml_gateway.domain.api.listed_tools import ListMode, has_upstream_tools
from pml_gateway.domain.api.mcp_names import (
    how_to_call_capability,
    how_to_call_tool,
    listed_names,
)
from pml_gateway.domain.api.mcp_results import (
    answer_result,
    execute_result,
    tool_call_result,
)
from pml_gateway.domain.api.mcp_tasks import or_task
from pml_gateway.domain.api.mcp_tools import did_you_mean, listing_of
from pml_gateway.domain.tool_calls.tool_result import error_result, not_a_result
from pml_gateway.entrypoints.mcp.meta_tools import META_TOOLS, PML_EXECUTE
from pml_gateway.entrypoints.mcp.old_tools import OLD_TOOLS
from pml_gateway.entrypoints.mcp.server_inputs import InputAsked
from pml_gateway.ports import HERE, AgentApi, AllowedTools, Caller, CallerSide

log = logging.getLogger(__name__)

_STOPPED: Final = (
    "the gateway stopped before the call ended, and its outcome is unknown: check what it did "
    "before you call again"
)
_MISSING: Final = "pml/missing"
_REFUSALS = (Busy, QueryFailed, Conflict, Forbidden, InvalidRequest, NotFound, Unavailable)


class McpTools:
    """Lists and calls tools. Failed calls return a result too, since the agent has to read it."""

    def __init__(
        self,
        agent: AgentApi,
        allowed: AllowedTools,
        timeout_s: float,
        shown: Callable[[str], JsonObject],
    ) -> None:
        self._agent = agent
        self._shown = shown
        self._allowed = allowed
        self._timeout_s = timeout_s
        self._pending: set[asyncio.Timeout] = set()

    def end_calls(self) -> None:
        """Answer the pending calls: their outcome is unknown."""
        now = asyncio.get_running_loop().time()
        for call in self._pending:
            if not call.expired():
                call.reschedule(now)

    async def list_tools(
        self, caller: Caller, mode: ListMode, cursor: str | None = None
    ) -> ListToolsResult:
        """Return a page of what the caller may call: the first has the tools of the mode, and as
        the later ones named capabilities. Without the registry there are no capabilities, and
        `_meta` says so."""
        named, meta = RecordPage(records=(), total=0), None
        try:
            named = await self._allowed.named_capabilities(caller, cursor)
        except (QueryFailed, Retryable, Unavailable) as error:
            if cursor is not None:
                raise
            log.warning("tools are listed without capabilities: %s", error)
            meta = {_MISSING: f"capabilities are missing: {error}"}
        capabilities = [Tool.model_validate(capability_listing(each)) for each in named.records]
        tools = await self._own_and_upstream(caller, mode) if cursor is None else ()
        listed = ListToolsResult(tools=[*tools, *capabilities], next_cursor=named.next_cursor)
        return listed if meta is None else listed.model_copy(update={"meta": meta})

    async def _own_and_upstream(self, caller: Caller, mode: ListMode) -> Sequence[Tool]:
        known = await self._allowed.list_tools(caller.scope)
        listed = known if has_upstream_tools(mode, known) else ()
        tools = {tool.tool_id: tool for tool in listed}
        names = self._names_of(tools)
        upstream = (
            Tool.model_validate(listing_of(tools[tool_id], names[tool_id], self._shown(tool_id)))
            for tool_id in sorted(tools)
        )
        return [*(each.listing for each in META_TOOLS.values()), *upstream]

    async def call(
        self, caller: Caller, name: str, args: JsonObject, side: CallerSide = HERE
    ) -> CallToolResult:
        """Call a tool by its listed name or its true id. Raises MCPError `INVALID_PARAMS` where
        there is none."""
        until_stopped = asyncio.timeout(None)
        try:
            async with until_stopped:
                self._pending.add(until_stopped)
                result = await self._call(caller, name, args, side)
        except TimeoutError:
            if not until_stopped.expired():
                raise
            result = error_result(_STOPPED)
        except _REFUSALS as error:
            result = error_result(str(error))
        except Retryable as error:
            result = error_result(f"{error}; try again later")
        finally:
            self._pending.discard(until_stopped)
        return CallToolResult.model_validate(result)

    async def _call(
        self, caller: Caller, name: str, args: JsonObject, side: CallerSide
    ) -> JsonObject:
        meta_tool = META_TOOLS.get(name) or OLD_TOOLS.get(name)
        if meta_tool is not None:
            return await meta_tool.call(self._agent, caller, args, side)
        capability = capability_of_tool(name)
        if capability is not None and await self._allowed.is_capability(caller, capability):
            return await self._run(caller, capability, args, side)
        tool = await self._find(caller, name)
        answer = await self._agent.call_tool(
            caller.scope, caller.principal, tool.tool_id, args, self._timeout_s, side
        )
        result = tool_call_result(tool, or_task(answer, as_task=side.as_task))
        if not_a_result(result):
            raise _without_result(result)
        return result

    async def _run(
        self, caller: Caller, capability: str, args: JsonObject, side: CallerSide
    ) -> JsonObject:
        request = ExecuteRequest(capability=capability, args=args)
        answer = await self._agent.execute(caller.scope, caller.principal, request, side)
        answer = or_task(answer, as_task=side.as_task)
        return answer_result(capability, answer, structured=isinstance(answer.result, dict))

    async def result_of(self, caller: Caller, name: str, answer: ExecuteResponse) -> JsonObject:
        """Return the result of a call of a tool by this name, made of what it came to. Raises
        Unavailable."""
        if name == PML_EXECUTE.name or name in OLD_TOOLS:
            return execute_result(answer)
        tools = {tool.tool_id: tool for tool in await self._allowed.list_tools(caller.scope)}
        names = {listed: tool_id for tool_id, listed in self._names_of(tools).items()}
        tool = tools.get(names.get(name, name))
        if tool is not None:
            return tool_call_result(tool, answer)
        return answer_result(name, answer, structured=isinstance(answer.result, dict))

    async def _find(self, caller: Caller, name: str, *, waited: bool = False) -> ToolDefinition:
        tools = {tool.tool_id: tool for tool in await self._allowed.list_tools(caller.scope)}
        if name in tools:
            return tools[name]
        listed = {listed: tool_id for tool_id, listed in self._names_of(tools).items()}
        if name in listed:
            return tools[listed[name]]
        if not waited and await self._allowed.until_listed(name, self._timeout_s):
            return await self._find(caller, name, waited=True)
        if (why := self._allowed.withheld(name)) is not None:
            raise Conflict(why)
        if (why := self._allowed.absent_server_of(name)) is not None:
            raise Unavailable(f"no tool {name!r} is known: {why}")
        raise MCPError(INVALID_PARAMS, await self._unknown(caller, name, tools))

    def _names_of(self, tool_ids: Iterable[str]) -> dict[str, str]:
        """Return the listed name of each tool id."""
        return _names_of_set(frozenset(tool_ids), frozenset(self._allowed.bare_servers()))

    async def _unknown(self, caller: Caller, name: str, tools: Mapping[str, ToolDefinition]) -> str:
        """Explain that no tool has this name, and how what has it is called."""
        with suppress(Conflict, QueryFailed, Unavailable, Retryable):
            if await self._allowed.is_capability(caller, name):
                return how_to_call_capability(name)
        listed = self._names_of(tools)
        similar = did_you_mean(name, [*META_TOOLS, *listed.values(), *tools])
        return how_to_call_tool(name, listed) or f"no tool {name!r}{similar}"


def _without_result(answer: JsonObject) -> Exception:
    """Return what to raise for the answer of a tool's server that is no result."""
    match answer:
        case {"error": {"code": int() as code, "message": str() as message, **more}}:
            return MCPError(code, message, more.get("data"))
        case _:
            return InputAsked(answer)


@lru_cache(maxsize=256)
def _names_of_set(tool_ids: frozenset[str], bare: frozenset[str]) -> dict[str, str]:
    return listed_names(tool_ids, {*META_TOOLS, *OLD_TOOLS}, bare)
