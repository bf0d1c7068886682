"""MCP `tools/list`: our own tools, then the real ones under names that clients accept (F1)."""

from collections.abc import Iterable
from functools import lru_cache

from mcp_types import ListToolsResult, Tool

from pml_gateway.domain.api.mcp_names import listed_names
from pml_gateway.domain.api.mcp_tools import listing_of
from pml_gateway.domain.api.pml_tools import LISTINGS, OUR_NAMES
from pml_gateway.ports import AllowedTools, Caller


async def list_tools(caller: Caller, allowed: AllowedTools) -> ListToolsResult:
    """Everything the caller's scope may call, in one page."""
    tools = {tool.tool_id: tool for tool in await allowed.list_tools(caller.scope)}
    names = names_of(tools)
    real = (listing_of(tools[tool_id], names[tool_id]) for tool_id in sorted(tools))
    return ListToolsResult(tools=[Tool.model_validate(each) for each in (*LISTINGS, *real)])


def names_of(tool_ids: Iterable[str]) -> dict[str, str]:
    """The listed name of each tool id."""
    return _names(frozenset(tool_ids))


@lru_cache(maxsize=256)
def _names(tool_ids: frozenset[str]) -> dict[str, str]:
    return listed_names(tool_ids, reserved=OUR_NAMES)
