"""The policy's verdicts on tools and capabilities."""

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


def test_a_policy_that_denies_anything_is_told_from_one_that_asks() -> None:
    assert Policy(rules=RULES).can_deny
    assert Policy(otherwise="deny").can_deny
    assert not Policy(rules=RULES[1:]).can_deny


def test_a_policy_has_another_revision_with_another_rule() -> None:
    assert Policy(rules=RULES).revision == Policy(rules=RULES).revision
    assert Policy(rules=RULES).revision != Policy(rules=RULES[:2]).revision


BY_NAME = (
    PolicyRule(pattern="cap:ops:status", verdict="allow"),
    PolicyRule(pattern="cap:ops:*", verdict="ask"),
    PolicyRule(pattern="*:delete*", verdict="deny"),
)


@pytest.mark.parametrize(
    ("names", "verdict", "why"),
    [
        (["ops:deploy"], "ask", "The rule cap:ops:* says ask."),
        (["ops:status"], "allow", "The rule cap:ops:status says allow."),
        (["files:tidy", "ops:tidy"], "ask", "The rule cap:ops:* says ask."),
        (["files:delete_all"], "deny", "The rule *:delete* says deny."),
        (["files:tidy"], "allow", "No rule names it; its tools decide."),
    ],
)
def test_a_rule_may_name_a_capability_by_any_of_its_names(
    names: list[str], verdict: Verdict, why: str
) -> None:
    assert Policy(rules=BY_NAME).verdict_on_capability(names) == (verdict, why)


def test_without_a_rule_for_it_a_capability_is_decided_by_its_tools_however_strict_the_rest() -> (
    None
):
    strict = Policy(read_only="deny", otherwise="deny")
    assert strict.verdict_on_capability(["ops:deploy"])[0] == "allow"
