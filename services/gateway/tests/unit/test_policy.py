"""The policy's word on single tools, and which calls may be made again."""

import pytest

from pml_common.contracts.decision import Policy, PolicyRule, Verdict
from pml_common.contracts.tool import ToolAnnotations, ToolDefinition
from pml_gateway.domain.policy import repeatable, repeatable_among, verdict_on
from services.gateway.tests.examples import READ, TOOLS, WRITE, analyzed, workflow

RULES = (
    PolicyRule(pattern="fs:wr*", verdict="deny"),
    PolicyRule(pattern="fs:*", verdict="ask"),
    PolicyRule(pattern="FS:*", verdict="allow"),
)


@pytest.mark.parametrize(
    ("tool", "policy", "verdict"),
    [
        (READ, Policy(), "allow"),
        (WRITE, Policy(), "ask"),
        (READ, Policy(rules=RULES), "ask"),
        (WRITE, Policy(rules=RULES), "deny"),
        (READ, Policy(read_only="deny"), "deny"),
        (WRITE, Policy(otherwise="allow"), "allow"),
    ],
)
def test_the_first_rule_that_matches_wins(
    tool: ToolDefinition, policy: Policy, verdict: Verdict
) -> None:
    assert verdict_on(tool, policy) == verdict


def test_only_what_says_so_itself_may_be_called_again() -> None:
    idempotent = ToolDefinition(server="a", name="b", annotations=ToolAnnotations(idempotent=True))
    assert repeatable(READ)
    assert repeatable(idempotent)
    assert not repeatable(WRITE)
    assert not repeatable(None)


def test_of_a_program_the_repeatable_tools_are_told() -> None:
    analysis = analyzed(workflow(), tools=(READ, WRITE))
    assert repeatable_among(analysis, TOOLS.get) == ("fs:read",)
    assert repeatable_among(None, TOOLS.get) == ()
