"""The policy's word on single tools."""

import pytest

from pml_common.contracts.decision import Policy, PolicyRule, Verdict
from pml_common.contracts.tool import ToolAnnotations, ToolDefinition

READ = ToolDefinition(server="fs", name="read", annotations=ToolAnnotations(read_only=True))
WRITE = ToolDefinition(server="fs", name="write", annotations=ToolAnnotations(destructive=True))
PLAIN = ToolDefinition(server="fs", name="touch")
RULES = (
    PolicyRule(pattern="fs:wr*", verdict="deny"),
    PolicyRule(pattern="fs:*", verdict="ask"),
    PolicyRule(pattern="FS:*", verdict="allow"),
)


@pytest.mark.parametrize(
    ("tool", "policy", "verdict", "why"),
    [
        (READ, Policy(), "allow", "Its server marks it read-only: allow."),
        (WRITE, Policy(), "ask", "Its server marks it destructive: ask."),
        (PLAIN, Policy(), "ask", "Its server does not mark it read-only: ask."),
        (READ, Policy(rules=RULES), "ask", "The rule fs:* says ask."),
        (WRITE, Policy(rules=RULES), "deny", "The rule fs:wr* says deny."),
        (READ, Policy(read_only="deny"), "deny", "Its server marks it read-only: deny."),
        (WRITE, Policy(otherwise="allow"), "allow", "Its server marks it destructive: allow."),
    ],
)
def test_the_first_rule_that_matches_wins(
    tool: ToolDefinition, policy: Policy, verdict: Verdict, why: str
) -> None:
    assert policy.verdict_on(tool) == (verdict, why)
