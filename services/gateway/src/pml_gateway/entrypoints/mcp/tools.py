"""MCP `tools/list` and `tools/call`: PML's own tools, and those of upstream servers under the
policy."""

import asyncio
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from mcp_types import CallToolResult, ListToolsResult, Tool

from pml_common.bus.errors import QueryFailed
from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_common.errors import Retryable
from pml_gateway.domain.api.errors import (
    Busy,
    Conflict,
    Forbidden,
    InvalidRequest,
    NotFound,
    Unavailable,
)
from pml_gateway.domain.api.mcp_names import listed_names
from pml_gateway.domain.api.mcp_results import tool_call_result
from pml_gateway.domain.api.mcp_tools import did_you_mean, listing_of
from pml_gateway.domain.tool_calls.tool_result import error_result
from pml_gateway.entrypoints.mcp.meta_tools import META_TOOLS
from pml_gateway.ports import HERE, AgentApi, AllowedTools, Caller, CallerSide

_STOPPED: Final = (
    "the gateway stopped before the call ended, and its outcome is unknown: check what it did "
    "before you call again"
)
_REFUSALS = (Busy, QueryFailed, Conflict, Forbidden, InvalidRequest, NotFound, Unavailable)


class McpTools:
    """Lists and calls tools. Failed calls return a result too, since the agent has to read it."""

    def __init__(self, agent: AgentApi, allowed: AllowedTools, timeout_s: float) -> None:
        self._agent = agent
        self._allowed = allowed
        self._timeout_s = timeout_s
        self._pending: set[asyncio.Timeout] = set()

    def end_calls(self) -> None:
        """Answer the pending calls: their outcome is unknown."""
        now = asyncio.get_running_loop().time()
        for call in self._pending:
            if not call.expired():
                call.reschedule(now)

    async def list_tools(self, caller: Caller) -> ListToolsResult:
        """Return all tools that the caller's scope may call, in one page."""
        tools = {tool.tool_id: tool for tool in await self._allowed.list_tools(caller.scope)}
        names = _names_of(tools)
        upstream = (
            Tool.model_validate(listing_of(tools[tool_id], names[tool_id]))
            for tool_id in sorted(tools)
        )
        return ListToolsResult(tools=[*(each.listing for each in META_TOOLS.values()), *upstream])

    async def call(
        self, caller: Caller, name: str, args: JsonObject, side: CallerSide = HERE
    ) -> CallToolResult:
        """Call a tool by its listed name or its true id."""
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
        meta_tool = META_TOOLS.get(name)
        if meta_tool is not None:
            return await meta_tool.call(self._agent, caller, args, side)
        tool = await self._find(caller, name)
        answer = await self._agent.call_tool(
            caller.scope, caller.principal, tool.tool_id, args, self._timeout_s, side
        )
        return tool_call_result(tool, answer)

    async def _find(self, caller: Caller, name: str, *, waited: bool = False) -> ToolDefinition:
        tools = {tool.tool_id: tool for tool in await self._allowed.list_tools(caller.scope)}
        if name in tools:
            return tools[name]
        listed = {listed: tool_id for tool_id, listed in _names_of(tools).items()}
        if name in listed:
            return tools[listed[name]]
        if not waited and await self._allowed.until_listed(name, self._timeout_s):
            return await self._find(caller, name, waited=True)
        if (why := self._allowed.withheld(name)) is not None:
            raise Conflict(why)
        raise NotFound(f"no tool {name!r}{did_you_mean(name, [*META_TOOLS, *listed, *tools])}")


def _names_of(tool_ids: Iterable[str]) -> dict[str, str]:
    """Return the listed name of each tool id."""
    return _names_of_set(frozenset(tool_ids))


@lru_cache(maxsize=256)
def _names_of_set(tool_ids: frozenset[str]) -> dict[str, str]:
    return listed_names(tool_ids, reserved=META_TOOLS.keys())
