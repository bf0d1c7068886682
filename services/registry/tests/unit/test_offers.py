"""Search results under a policy."""

import pytest

from pml_common.contracts.decision import Policy, PolicyRule
from pml_common.contracts.tool import ToolAnnotations
from pml_registry.domain.offers import Subject, judged_tool, offered
from pml_registry.domain.ranking import Kind, Ranked

WRITES = judged_tool("fs:write", ToolAnnotations())
READS = judged_tool("fs:read", ToolAnnotations(read_only=True))
SUBJECTS: dict[tuple[Kind, str], Subject] = {
    ("tool", "fs:write"): Subject([WRITES]),
    ("tool", "fs:read"): Subject([READS]),
    ("capability", "copies"): Subject([READS, WRITES], ("fs:copy", "fs:duplicate")),
    ("capability", "shows"): Subject([READS], ("fs:show",)),
}
RANKED = [Ranked(kind, id_, 0.5) for kind, id_ in SUBJECTS]


def _policy(pattern: str) -> Policy:
    return Policy(rules=(PolicyRule(pattern=pattern, verdict="deny"),))


@pytest.mark.parametrize(
    ("policy", "left"),
    [
        (Policy(), ["fs:write", "fs:read", "copies", "shows"]),
        (_policy("fs:write"), ["fs:read", "shows"]),
        (_policy("cap:fs:duplicate"), ["fs:write", "fs:read", "shows"]),
        (Policy(otherwise="deny"), ["fs:read", "shows"]),
        (Policy(read_only="deny"), ["fs:write"]),
    ],
)
def test_tools_that_are_denied_and_capabilities_that_use_them_are_not_offered(
    policy: Policy, left: list[str]
) -> None:
    assert [each.id for each in offered(RANKED, policy, SUBJECTS)] == left


def test_what_was_removed_meanwhile_is_not_offered() -> None:
    assert offered([Ranked("tool", "fs:gone", 0.9)], Policy(), SUBJECTS) == []
