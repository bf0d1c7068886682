"""MCP `tools/call`: our own tools, and real ones by the road that policy allows (F1, A11)."""

import asyncio
from typing import Final, TypeVar

from mcp_types import CallToolResult
from pydantic import BaseModel, ValidationError

from pml_common.bus.errors import QueryFailed
from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_common.errors import Retryable
from pml_gateway.domain.api.api import ExecuteRequest
from pml_gateway.domain.api.errors import (
    Busy,
    Conflict,
    Forbidden,
    InvalidRequest,
    NotFound,
    Unavailable,
)
from pml_gateway.domain.api.mcp_answers import answer_of, answer_of_tool
from pml_gateway.domain.api.mcp_tools import did_you_mean
from pml_gateway.domain.api.pml_tools import DISCOVER, EXECUTE, OUR_NAMES, DiscoverArguments
from pml_gateway.domain.tool_calls.tool_result import error_result, result_of
from pml_gateway.entrypoints.mcp.list_tools import names_of
from pml_gateway.ports import AgentApi, AllowedTools, Caller

M = TypeVar("M", bound=BaseModel)

_STOPPED: Final = (
    "the gateway stops, and the call was not over: how it ended is not known; see what it did "
    "before you call again"
)
_SAID_NO = (Busy, QueryFailed, Conflict, Forbidden, InvalidRequest, NotFound, Unavailable)


class McpCalls:
    """Answers every call with a result: what went wrong is for the agent to read, too."""

    def __init__(self, agent: AgentApi, allowed: AllowedTools, timeout_s: float) -> None:
        self._agent = agent
        self._allowed = allowed
        self._timeout_s = timeout_s
        self._under_way: set[asyncio.Timeout] = set()

    def end(self) -> None:
        """Answer the calls under way: how they end is not known."""
        now = asyncio.get_running_loop().time()
        for call in self._under_way:
            if not call.expired():
                call.reschedule(now)

    async def call(self, caller: Caller, name: str, args: JsonObject) -> CallToolResult:
        """Call a tool by its listed name or its true id."""
        until_stopped = asyncio.timeout(None)
        try:
            async with until_stopped:
                self._under_way.add(until_stopped)
                result = await self._call(caller, name, args)
        except TimeoutError:
            if not until_stopped.expired():
                raise
            result = error_result(_STOPPED)
        except _SAID_NO as error:
            result = error_result(str(error))
        except Retryable as error:
            result = error_result(f"{error}; try again later")
        finally:
            self._under_way.discard(until_stopped)
        return CallToolResult.model_validate(result)

    async def _call(self, caller: Caller, name: str, args: JsonObject) -> JsonObject:
        if name == EXECUTE:
            request = _understood(ExecuteRequest, args)
            return answer_of(await self._agent.execute(caller.scope, caller.principal, request))
        if name == DISCOVER:
            query = _understood(DiscoverArguments, args).query(caller.scope)
            page = await self._agent.discover(query)
            return result_of(page.model_dump(mode="json", exclude_none=True), structured=True)
        tool = await self._find(caller, name)
        answer = await self._agent.call_tool(
            caller.scope, caller.principal, tool.tool_id, args, self._timeout_s
        )
        return answer_of_tool(tool, answer)

    async def _find(self, caller: Caller, name: str, *, waited: bool = False) -> ToolDefinition:
        tools = {tool.tool_id: tool for tool in await self._allowed.list_tools(caller.scope)}
        if name in tools:
            return tools[name]
        listed = {listed: tool_id for tool_id, listed in names_of(tools).items()}
        if name in listed:
            return tools[listed[name]]
        if not waited and await self._allowed.until_listed(name, self._timeout_s):
            return await self._find(caller, name, waited=True)
        raise NotFound(f"no tool {name!r}{did_you_mean(name, [*OUR_NAMES, *listed, *tools])}")


def _understood(model: type[M], args: JsonObject) -> M:
    try:
        return model.model_validate(args)
    except ValidationError as error:
        fault = error.errors()[0]
        field = ".".join(str(part) for part in fault["loc"])
        raise InvalidRequest(field, f"cannot be used: {fault['msg']}") from None
