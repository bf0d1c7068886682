"""Former names of PML's own tools: not listed; they answer, and say what to call instead."""

from collections.abc import Mapping
from typing import Any, Final, Literal

from mcp_types import ToolAnnotations
from pydantic import AliasChoices, Field, JsonValue

from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.api.api import ExecuteRequest, Intent
from pml_gateway.domain.api.request import Request
from pml_gateway.domain.sources.dag_source import Dag
from pml_gateway.entrypoints.mcp.meta_tools import (
    PML_DISCOVER,
    PML_EXECUTE,
    DiscoverArguments,
    DiscoverFilter,
    MetaTool,
)
from pml_gateway.ports import AgentApi, Caller, CallerSide


class OldSearch(Request):
    """Arguments of the former searches."""

    intent: Intent = Field(validation_alias=AliasChoices("intent", "query"))
    limit: int = Field(default=10, ge=1, le=100, validation_alias=AliasChoices("limit", "top_k"))


class OldDag(Request):
    """Arguments of `pml_execute_dag`."""

    dag: Dag = Field(validation_alias=AliasChoices("dag", "workflow"))
    intent: Intent | None = None
    args: JsonObject | None = None


class OldCode(Request):
    """Arguments of `pml_execute_code`."""

    code: str = Field(min_length=1)
    intent: Intent | None = None
    context: JsonObject | None = None


def _search(name: str, kind: Literal["tool", "capability"]) -> MetaTool[OldSearch]:
    async def handler(
        agent: AgentApi, caller: Caller, asked: OldSearch, side: CallerSide
    ) -> JsonObject:
        only = DiscoverFilter(type=kind)
        now = DiscoverArguments(intent=asked.intent, filter=only, limit=asked.limit)
        found = await PML_DISCOVER.handler(agent, caller, now, side)
        call = f'pml_discover {{"intent": "…", "filter": {{"type": "{kind}"}}}}'
        return _with_advice(found, name, call)

    return _tool(name, OldSearch, handler)


async def _dag(agent: AgentApi, caller: Caller, asked: OldDag, side: CallerSide) -> JsonObject:
    now = ExecuteRequest(dag=asked.dag, intent=asked.intent, args=asked.args)
    done = await PML_EXECUTE.handler(agent, caller, now, side)
    return _with_advice(done, "pml_execute_dag", 'pml_execute {"dag": {"tasks": […]}}')


async def _code(agent: AgentApi, caller: Caller, asked: OldCode, side: CallerSide) -> JsonObject:
    now = ExecuteRequest(code=asked.code, intent=asked.intent, context=asked.context)
    done = await PML_EXECUTE.handler(agent, caller, now, side)
    return _with_advice(done, "pml_execute_code", 'pml_execute {"code": "…", "args": {…}}')


def _tool(name: str, arguments: type[Any], handler: Any) -> MetaTool[Any]:
    return MetaTool(name, name, "Deprecated.", ToolAnnotations(), arguments, handler)


def _with_advice(result: JsonObject, name: str, call: str) -> JsonObject:
    """Add to a result, behind its own blocks, that its tool has another name."""
    content = result.get("content")
    advice = f"{name} is deprecated and will be removed: call {call} instead."
    blocks: list[JsonValue] = [*(content if isinstance(content, list) else ())]
    return {**result, "content": [*blocks, {"type": "text", "text": advice}]}


OLD_TOOLS: Final[Mapping[str, MetaTool[Any]]] = {
    tool.name: tool
    for tool in (
        _search("pml_search_tools", "tool"),
        _search("pml_search_capabilities", "capability"),
        _search("pml_find_capabilities", "capability"),
        _tool("pml_execute_dag", OldDag, _dag),
        _tool("pml_execute_code", OldCode, _code),
    )
}
"""All of them by name."""
