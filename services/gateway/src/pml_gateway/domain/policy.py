"""What a tool's own definition and the scope's policy say about calls of it."""

from collections.abc import Callable
from fnmatch import fnmatchcase

from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.decision import Policy, Verdict
from pml_common.contracts.tool import ToolDefinition


def verdict_on(tool: ToolDefinition, policy: Policy) -> Verdict:
    """The first rule that matches, else what the tool's own hint calls for."""
    for rule in policy.rules:
        if fnmatchcase(tool.tool_id, rule.pattern):
            return rule.verdict
    return policy.read_only if tool.annotations.read_only else policy.otherwise


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
