"""Learned outputs of tools without an output schema, as the registry has them."""

import logging
from collections.abc import Sequence

from pml_common.bus.errors import BusUnavailable, QueryFailed
from pml_common.bus.port import QueryClient
from pml_common.contracts import catalog
from pml_common.contracts.registry import ListTools
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import ToolDefinition

log = logging.getLogger(__name__)

_TIMEOUT_S = 2.0


async def with_learned_outputs(
    tools: Sequence[ToolDefinition], scope: Scope, query_client: QueryClient
) -> tuple[Sequence[ToolDefinition], str | None]:
    """Return the tools with their learned outputs, of those whose definition the registry has as it
    is now; and why there are none, if the registry does not answer."""
    query = ListTools(scope=scope)
    try:
        found = await query_client.request(catalog.LIST_TOOLS, query, timeout=_TIMEOUT_S)
    except (QueryFailed, BusUnavailable) as error:
        log.info("%s: tools are listed without learned outputs: %s", scope, error)
        return tools, f"learned outputs are not shown: {error}"
    learned = {each.tool_id: each for each in found.tools if each.learned_output is not None}
    return [_with_output(tool, learned.get(tool.tool_id)) for tool in tools], None


def _with_output(tool: ToolDefinition, learned: ToolDefinition | None) -> ToolDefinition:
    if learned is None or learned.model_copy(update={"learned_output": None}) != tool:
        return tool
    return learned
