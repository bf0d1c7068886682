"""The decision about a program in a dry run."""

import pytest

from pml_analysis.analysis import Analysis, analyze
from pml_common.contracts.decision import Decision, DryRun, Policy, PolicyRule, Verdict
from services.analyzer.tests.support.programs import TOOLS

READ, WRITE = "mcp.fs.read({ path: 'a' });", "mcp.fs.write({ path: 'a', content: '' });"
DYNAMIC = "mcp[args.s].x({});"


def decided(code: str, dry_run: DryRun | None, *rules: tuple[str, Verdict]) -> Decision:
    policy = Policy(rules=tuple(PolicyRule(pattern=p, verdict=v) for p, v in rules))
    outcome = analyze(code, tools=TOOLS, policy=policy, dry_run=dry_run)
    assert isinstance(outcome, Analysis)
    return outcome.decision


@pytest.mark.parametrize(
    ("code", "rules", "verdict", "mocked"),
    [
        (WRITE, [], "allow", {"fs:write"}),
        (WRITE, [("fs:write", "allow")], "allow", {"fs:write"}),
        (WRITE, [("fs:write", "deny")], "deny", set[str]()),
        (READ, [], "allow", set[str]()),
        (READ, [("fs:read", "ask")], "ask", set[str]()),
        (READ + WRITE, [], "allow", {"fs:write"}),
    ],
)
def test_nobody_is_asked_about_what_mocks_answer_and_a_denial_stays_one(
    code: str, rules: list[tuple[str, Verdict]], verdict: Verdict, mocked: set[str]
) -> None:
    decision = decided(code, DryRun(), *rules)
    assert decision.verdict == verdict
    assert {tool.tool for tool in decision.tools if tool.mocked} == mocked


def test_a_mock_that_is_given_answers_a_read_only_tool_too() -> None:
    (tool,) = decided(READ, DryRun(mocks={"fs:read": "x"}), ("fs:read", "ask")).tools
    assert (tool.verdict, tool.mocked) == ("allow", True)
    assert tool.reason.endswith("In this dry run a mock answers it.")


def test_a_call_known_only_when_it_runs_reaches_mocks_and_what_needs_no_approval() -> None:
    rules: list[tuple[str, Verdict]] = [("fs:create", "deny"), ("fs:stat", "ask")]
    dry, wet = decided(DYNAMIC, DryRun(), *rules), decided(DYNAMIC, None, *rules)
    assert (dry.verdict, wet.verdict) == ("allow", "ask")
    reads = {tool.tool_id for tool in TOOLS if tool.annotations.read_only} - {"fs:stat"}
    writes = {tool.tool_id for tool in TOOLS if not tool.annotations.read_only} - {"fs:create"}
    assert {tool.tool for tool in wet.tools} == reads
    assert {tool.tool for tool in dry.tools if not tool.mocked} == reads
    assert {tool.tool for tool in dry.tools if tool.mocked} == writes
    assert (dry.askable, wet.askable.keys()) == ({}, {*writes, "fs:stat"})
