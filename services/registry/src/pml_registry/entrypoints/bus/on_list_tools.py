"""Handles `list-tools`."""

from pml_common.contracts.registry import ListTools, ToolCatalog
from pml_registry.ports import ToolStore


async def on_list_tools(query: ListTools, tools: ToolStore) -> ToolCatalog:
    """Return the tool catalog of the client's scope."""
    return ToolCatalog(
        tools=tuple(await tools.tools(query.scope, query.server)),
        quarantined=tuple(await tools.quarantined(query.scope, query.server)),
    )
