"""The policy's word on one tool that is called directly, without a program around it."""

from fnmatch import fnmatchcase

from pml_common.contracts.decision import Policy, Verdict
from pml_common.contracts.tool import ToolDefinition


def verdict_on(tool: ToolDefinition, policy: Policy) -> Verdict:
    """The first rule that matches, else what the tool's own hint calls for."""
    for rule in policy.rules:
        if fnmatchcase(tool.tool_id, rule.pattern):
            return rule.verdict
    return policy.read_only if tool.annotations.read_only else policy.otherwise


def repeatable(tool: ToolDefinition) -> bool:
    """Whether a call of it may be made again when nobody knows how the first one ended."""
    return bool(tool.annotations.read_only or tool.annotations.idempotent)
