"""The verdicts on programs that call capabilities, and the reasons for approvers."""

import pytest

from pml_analysis.analysis import Analysis, analyze
from pml_analysis.decision.capabilities import MAX_DEPTH
from pml_common.contracts.decision import ArgumentRule, Policy, PolicyRule, ToolDecision, Verdict
from services.analyzer.tests.support.library import (
    KNOWN,
    PURE,
    READ_JSON,
    REPORT,
    calling,
    described,
    library,
)
from services.analyzer.tests.support.programs import TOOLS

READ = "await capabilities.fs_read_json({ path: 'a.json' });"
WRITE = "await capabilities.report_weekly({ path: args.day, content: '' });"


def _rules(*rules: tuple[str, Verdict]) -> Policy:
    return Policy(rules=tuple(PolicyRule(pattern=p, verdict=v) for p, v in rules))


@pytest.mark.parametrize(
    ("code", "policy", "verdict"),
    [
        ("await capabilities.math_double({ x: 1 });", Policy(), "allow"),
        (READ, Policy(), "allow"),
        (WRITE, Policy(), "ask"),
        (READ + WRITE, Policy(), "ask"),
        (WRITE, _rules(("fs:write", "allow")), "allow"),
        (WRITE, _rules(("fs:write", "deny")), "deny"),
        (WRITE, _rules(("fs:read", "deny"), ("fs:write", "allow")), "deny"),
        (READ, _rules(("cap:fs:*", "ask")), "ask"),
        (READ, _rules(("cap:fs:*", "deny")), "deny"),
        (WRITE, _rules(("cap:fs:*", "deny")), "deny"),
        (WRITE, _rules(("cap:*", "allow")), "ask"),
        (READ, _rules(("cap:fs:old_*", "deny")), "allow"),
    ],
)
def test_the_strictest_verdict_of_all_nested_tools_and_rules_wins(
    code: str, policy: Policy, verdict: Verdict
) -> None:
    assert calling(code, policy=policy).decision.verdict == verdict


def test_a_rule_on_a_former_name_still_holds() -> None:
    renamed = library(READ_JSON.model_copy(update={"aliases": ("fs:old_json",)}))
    denied = calling(READ, renamed, _rules(("cap:fs:old_*", "deny"))).decision
    assert denied.verdict == "deny"


def test_reasons_tell_through_which_capability_a_tool_is_called() -> None:
    assert calling("\n" + READ).decision.reasons == (
        'Calls fs:read ("Reads a file.") through capability fs:read_json on line 2 with '
        'path = "a.json". Its server marks it read-only: allow.',
    )
    (reason,) = calling(WRITE).decision.reasons
    assert reason == (
        'Calls fs:write ("Writes a file") through capability report:weekly on line 1 with '
        'path = the caller\'s day, content = "". Its server marks it destructive: ask.'
    )


def test_reasons_name_the_whole_way_and_direct_calls_first() -> None:
    policy = _rules(("*", "allow"))
    read, _ = calling(WRITE + READ + "mcp.fs.read({});", policy=policy).decision.reasons
    assert read == (
        'Calls fs:read ("Reads a file.") on line 1; through capability report:weekly on line 1 '
        'with path = the caller\'s day, content = "", which calls fs:read_json; through '
        'capability fs:read_json on line 1 with path = "a.json". The rule * says allow.'
    )


def test_many_ways_are_summed_up() -> None:
    (reason,) = calling("await capabilities.fs_read_json({});\n" * 5).decision.reasons
    assert "on line 3; and on lines 4, 5." in reason


def test_a_rule_on_a_capability_says_where_it_is_called() -> None:
    denied = calling(WRITE, policy=_rules(("cap:fs:*", "deny"), ("fs:*", "allow"))).decision
    assert denied.reasons == (
        "Calls capability fs:read_json through capability report:weekly on line 1 with "
        'path = the caller\'s day, content = "". The rule cap:fs:* says deny.',
    )


def test_a_rule_speaks_of_each_capability_once() -> None:
    asked = calling(WRITE + READ, policy=_rules(("cap:fs:*", "ask"), ("fs:*", "allow"))).decision
    assert len(asked.reasons) == 1


def test_without_any_tool_it_says_so() -> None:
    decision = calling("await capabilities.math_double({ x: 1 });").decision
    assert decision.reasons == (
        "Neither the program nor a capability that it calls calls any tool.",
    )


def test_tools_are_bound_to_all_nodes_that_reach_them() -> None:
    decided = calling(READ + WRITE + "await mcp.fs.read({ path: 'x' });").decision.tools
    assert [(tool.tool, tool.node_ids) for tool in decided] == [
        ("fs:read", ("n3", "n1", "n2")),
        ("fs:write", ("n2",)),
    ]
    hashes = {tool.tool_id: tool.definition_hash for tool in TOOLS}
    assert all(tool.definition_hash == hashes[tool.tool] for tool in decided)


def test_capabilities_are_bound_by_id_and_hash_through_all_levels() -> None:
    report, read = calling(WRITE + "mcp.call('cap:report:weekly', {});").capabilities
    assert (report.capability_id, report.code_hash) == (REPORT.capability_id, REPORT.code_hash)
    assert (read.capability_id, read.code_hash) == (READ_JSON.capability_id, READ_JSON.code_hash)
    assert (report.node_ids, read.node_ids) == (("n1", "n2"), ("n1", "n2"))
    assert (report.calls, read.calls) == ((READ_JSON.capability_id,), ())
    assert set(report.called_as) == {"report:weekly", "report_weekly", str(REPORT.capability_id)}
    assert (read.verdict, read.reason) == ("allow", "No rule names it; its tools decide.")


def test_a_capability_reached_twice_is_bound_once() -> None:
    found = calling(READ + WRITE, policy=_rules(("cap:report:*", "ask"))).capabilities
    assert [(one.name, one.node_ids, one.verdict) for one in found] == [
        ("fs:read_json", ("n1", "n2"), "allow"),
        ("report:weekly", ("n2",), "ask"),
    ]


def test_a_dynamic_call_in_a_capability_is_asked_for_and_may_reach_what_needs_no_approval() -> None:
    known = library(
        described("any:tool", "return await mcp[args.s][args.t]({});"),
        described("any:outer", "return capabilities.any_tool(args);"),
    )
    decision = calling("\ncapabilities.any_outer({}); capabilities.any_tool({});", known).decision
    assert decision.verdict == "ask"
    assert decision.reasons == (
        "Which tool mcp[args.s][args.t]({}) in capability any:tool, called from line 2, reaches "
        "is known only when it runs; it may reach the tools named here and those that need no "
        "approval: ask.",
    )
    free = {tool.tool_id for tool in TOOLS if tool.annotations.read_only}
    assert {tool.tool for tool in decision.tools} == free


def test_a_rule_holds_for_the_program_that_runs_as_a_capability() -> None:
    policy = _rules(("cap:math:*", "ask"))
    outcome = analyze(PURE.code, tools=TOOLS, policy=policy, known_as=["math:twice", "math:double"])
    assert isinstance(outcome, Analysis)
    assert (outcome.decision.verdict, outcome.decision.reasons) == (
        "ask",
        ("This is capability math:twice. The rule cap:math:* says ask.",),
    )
    freely = analyze(PURE.code, tools=TOOLS, policy=Policy(), known_as=["math:double"])
    assert isinstance(freely, Analysis)
    assert freely.decision.verdict == "allow"


CYCLES = {
    "calling itself": {"a:a": "await mcp.fs.write({}); return capabilities.a_a();"},
    "calling each other": {
        "a:a": "return capabilities.a_b();",
        "a:b": "await mcp.fs.write({}); return capabilities.a_a();",
    },
}


@pytest.mark.parametrize("programs", CYCLES.values(), ids=CYCLES)
def test_cycles_end(programs: dict[str, str]) -> None:
    known = library(*(described(name, code) for name, code in programs.items()))
    analysis = calling("capabilities.a_a()", known)
    assert [one.name for one in analysis.capabilities] == list(programs)
    assert [tool.tool for tool in analysis.decision.tools] == ["fs:write"]


def _chain(length: int) -> list[ToolDecision]:
    """Return the tools of a program that calls a chain of capabilities, the last of which
    writes."""
    programs = [f"return capabilities.x_c{n + 1}();" for n in range(length - 1)]
    described_all = [
        described(f"x:c{n}", code) for n, code in enumerate([*programs, "await mcp.fs.write({});"])
    ]
    return list(calling("capabilities.x_c0()", library(*described_all)).decision.tools)


def test_tools_count_down_to_the_depth_that_may_run_and_no_further() -> None:
    assert [tool.tool for tool in _chain(MAX_DEPTH)] == ["fs:write"]
    assert _chain(MAX_DEPTH + 1) == []


def test_a_capability_near_by_one_way_and_deep_by_another_is_followed_from_near() -> None:
    known = library(
        described("x:a", "capabilities.x_b();"),
        described("x:b", "capabilities.x_c();"),
        described("x:c", "capabilities.x_d();"),
        described("x:d", "await mcp.fs.write({});"),
    )
    near = calling("capabilities.x_a(); capabilities.x_c();", known).decision
    assert [(tool.tool, tool.node_ids) for tool in near.tools] == [("fs:write", ("n2",))]


def test_what_is_pure_binds_no_tool() -> None:
    analysis = calling("return capabilities.math_double({ x: 1 });", KNOWN)
    assert [one.name for one in analysis.capabilities] == [PURE.name]
    assert analysis.decision.tools == ()


@pytest.mark.parametrize(
    ("path", "verdict"), [("'/work/a'", "allow"), ("args.p", "ask"), ("'/home/a'", "ask")]
)
def test_rules_on_arguments_speak_of_calls_in_capabilities(path: str, verdict: Verdict) -> None:
    rule = PolicyRule(
        pattern="fs:write", arguments=(ArgumentRule(name="path", under="/work"),), verdict="allow"
    )
    writing = described("fs:put", f"await mcp.fs.write({{ path: {path} }});")
    analysis = calling("await capabilities.fs_put({});", library(writing), Policy(rules=(rule,)))
    assert analysis.decision.verdict == verdict
