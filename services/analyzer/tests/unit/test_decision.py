"""The verdicts on programs, and the reasons for approvers."""

import pytest

from pml_analysis.decision.wording import first_sentence
from pml_common.contracts.decision import ArgumentRule, Policy, PolicyRule, Verdict
from services.analyzer.tests.support.programs import SOURCES_EXAMPLE, TOOLS, analysed

READ, WRITE = "mcp.fs.read({ path: 'a' });", "mcp.fs.write({ path, content: `${args.c}` });"


def _rules(*rules: tuple[str, Verdict]) -> Policy:
    return Policy(rules=tuple(PolicyRule(pattern=p, verdict=v) for p, v in rules))


@pytest.mark.parametrize(
    ("code", "policy", "verdict"),
    [
        ("return 1;", Policy(), "allow"),
        (READ, Policy(), "allow"),
        (READ, Policy(read_only="ask"), "ask"),
        (WRITE, Policy(), "ask"),
        (WRITE, Policy(otherwise="deny"), "deny"),
        ("mcp.fs.create({ path });", Policy(), "ask"),
        (READ + WRITE, Policy(), "ask"),
        (READ + WRITE, _rules(("fs:read", "deny")), "deny"),
        (WRITE, _rules(("fs:*", "allow")), "allow"),
        (WRITE, _rules(("fs:w*", "allow"), ("fs:*", "deny")), "allow"),
        (WRITE, _rules(("git:*", "deny")), "ask"),
        (WRITE, _rules(("FS:*", "deny")), "ask"),
        ("mcp[args.s].x({});", _rules(("*", "allow")), "ask"),
        ("mcp[args.s].x({});" + WRITE, _rules(("*", "deny")), "deny"),
    ],
)
def test_the_strictest_verdict_of_all_tools_wins(
    code: str, policy: Policy, verdict: Verdict
) -> None:
    assert analysed(code, policy).decision.verdict == verdict


def test_reasons_are_sentences_a_person_can_approve_by() -> None:
    code = "const r = await mcp.fs.read({ path: 'in' });\n" + WRITE.replace("args.c", "r.content")
    assert analysed(code).decision.reasons == (
        'Calls fs:write ("Writes a file") on line 2 with path = the caller\'s path, '
        "content = `${r.content}` (computed from n1). Its server marks it destructive: ask.",
    )


def test_what_is_allowed_says_why() -> None:
    assert analysed(READ).decision.reasons == (
        'Calls fs:read ("Reads a file.") on line 1 with path = "a". '
        "Its server marks it read-only: allow.",
    )


def test_a_rule_is_named() -> None:
    decision = analysed(WRITE, _rules(("fs:*", "deny"))).decision
    assert decision.reasons[0].endswith("The rule fs:* says deny.")


def test_a_program_without_tools_says_so() -> None:
    assert analysed("return 1;").decision.reasons == ("The program calls no tool.",)


def test_each_tool_is_decided_once_with_its_definition_and_its_nodes() -> None:
    tools = analysed(SOURCES_EXAMPLE + SOURCES_EXAMPLE.replace("file", "again")).decision.tools
    assert [(found.tool, found.verdict, found.node_ids) for found in tools] == [
        ("fs:stat", "allow", ("n1", "n5")),
        ("fs:read", "allow", ("n2", "n6")),
        ("fs:create", "ask", ("n3", "n7")),
        ("fs:write", "ask", ("n4", "n8")),
    ]
    (stat,) = [known for known in TOOLS if known.tool_id == "fs:stat"]
    assert tools[0].definition_hash == stat.definition_hash


def test_many_calls_of_one_tool_are_summed_up() -> None:
    one = analysed("mcp.git.status();\n" * 4).decision.reasons[0]
    assert "4 times: on line 1; on line 2; on line 3; and on line 4." in one
    two = analysed("mcp.git.status();\n" * 5 + "mcp.git.status(); mcp.git.status();")
    assert "7 times: " in two.decision.reasons[0]
    assert "; and on lines 4, 5, 6." in two.decision.reasons[0]
    most = analysed("mcp.git.status();\n" * 50).decision.reasons[0]
    assert "on lines 4, 5, " in most
    assert "43, and 7 other lines." in most


def test_nested_arguments_are_shown_and_long_ones_cut() -> None:
    code = (
        "mcp.fs.read({ a: { b: args.x, c: 1 }, d: [args.y, 'z'], e: 'long' + '" + "x" * 99 + "' });"
    )
    (reason,) = analysed(code).decision.reasons
    assert 'a = {b: the caller\'s x, c: 1}, d = [the caller\'s y, "z"], e = "longxxx' in reason
    assert "x" * 60 not in reason


def test_a_dynamic_call_is_explained() -> None:
    assert analysed("mcp[args.s].x({});").decision.reasons == (
        "Which tool mcp[args.s].x({}) on line 1 reaches is known only when it runs; "
        "it may reach the tools named here and those that need no approval: ask.",
    )


@pytest.mark.parametrize(
    ("description", "sentence"),
    [
        ("Reads a file. Very fast.", "Reads a file."),
        ("Reads e.g.this", "Reads e.g.this"),
        ("Reads a file\n\nMore", "Reads a file"),
        ("\u8bfb\u53d6\u6587\u4ef6\u3002 \u5f88\u5feb", "\u8bfb\u53d6\u6587\u4ef6\u3002"),
        ("Safe\u202e evil", "Safe\\u202e evil"),
        ("", ""),
        ("x" * 500, "x" * 160),
    ],
)
def test_a_server_describes_its_tool_in_one_visible_sentence(
    description: str, sentence: str
) -> None:
    assert first_sentence(description) == sentence


def test_a_call_known_only_when_it_runs_may_reach_what_needs_no_approval_and_nothing_else() -> None:
    decided = analysed("return await mcp.fs[args.tool]({ path: 'x' });").decision.tools
    free = {tool.tool_id for tool in TOOLS if tool.annotations.read_only}
    assert free
    assert {tool.tool for tool in decided} == free
    assert {tool.verdict for tool in decided} == {"allow"}
    assert not any(tool.node_ids for tool in decided)


def test_about_what_else_such_a_call_may_reach_a_person_can_be_asked_when_it_is_made() -> None:
    code = "return await mcp.fs[args.tool]({ path: 'x' });"
    asked = {t.tool_id: t.definition_hash for t in TOOLS if not t.annotations.read_only}
    assert asked
    assert analysed(code).decision.askable == asked
    assert analysed(code, Policy(otherwise="deny")).decision.askable == {}
    assert analysed(code + WRITE).decision.askable.keys() == asked.keys() - {"fs:write"}
    assert analysed(READ).decision.askable == {}


def test_a_program_whose_calls_are_all_known_reaches_only_those() -> None:
    assert [tool.tool for tool in analysed(READ).decision.tools] == ["fs:read"]


UNDER = ArgumentRule(name="path", under="/work")
LIKE = ArgumentRule(name="path", like="/etc/*")
BY_ARGUMENT = Policy(
    rules=(
        PolicyRule(pattern="fs:write", arguments=(UNDER,), verdict="allow"),
        PolicyRule(
            pattern="fs:write",
            arguments=(LIKE,),
            verdict="deny",
        ),
    )
)


@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        ("mcp.fs.write({ path: '/work/a', content: args.c });", "allow"),
        ("mcp.fs.write({ path: '/work/a' }); mcp.fs.write({ path: '/work/b' });", "allow"),
        ("mcp.fs.write({ path: '/work/a' }); mcp.fs.write({ path: '/home/b' });", "ask"),
        ("mcp.fs.write({ path: '/work/a' }); mcp.fs.write({ path: '/etc/b' });", "deny"),
        ("mcp.fs.write({ path: '/work/../etc/b' });", "ask"),
        ("mcp.fs.write({ path });", "deny"),
        ("mcp.fs.write({ content: 'x' });", "ask"),
        ("mcp.fs.write({ path: '/work/a', ...args.o });", "deny"),
        ("mcp.fs.write({ path: '/work/a' }); mcp[args.s].x();", "deny"),
    ],
)
def test_rules_on_arguments_speak_of_each_call(code: str, verdict: Verdict) -> None:
    (write, *_) = analysed(code, BY_ARGUMENT).decision.tools
    assert write.verdict == verdict


def test_the_reason_is_that_of_the_strictest_call() -> None:
    code = "mcp.fs.write({ path: '/work/a' });\nmcp.fs.write({ path: '/home/b' });"
    (reason,) = analysed(code, BY_ARGUMENT).decision.reasons
    assert reason.endswith("Its server marks it destructive: ask.")


def test_a_call_with_all_of_the_callers_arguments_says_so() -> None:
    (reason,) = analysed("return await mcp.call('fs:write', args);").decision.reasons
    assert "on line 1 with the caller's arguments." in reason


def test_defaults_of_the_callers_arguments_are_shown() -> None:
    (reason,) = analysed("mcp.fs.write({ path: args.p ?? 'a', content: args.c });").decision.reasons
    assert "path = the caller's p or \"a\", content = the caller's c." in reason
