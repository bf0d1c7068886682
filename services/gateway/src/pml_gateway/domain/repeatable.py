"""What a tool's own definition says about calls of it."""

from collections.abc import Callable

from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.tool import ToolDefinition


def repeatable(tool: ToolDefinition | None) -> bool:
    """Whether a call of it may be made again when nobody knows how the first one ended."""
    if tool is None:
        return False
    return bool(tool.annotations.read_only or tool.annotations.idempotent)


def repeatable_among(
    analysis: ExecutionAnalyzed | None, find: Callable[[str], ToolDefinition | None]
) -> tuple[str, ...]:
    """The tools of an analysed program whose calls may be made again."""
    if analysis is None:
        return ()
    tools = (tool.tool for tool in analysis.decision.tools)
    return tuple(tool_id for tool_id in tools if repeatable(find(tool_id)))
