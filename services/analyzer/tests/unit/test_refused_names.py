"""Names of tools that have no single meaning: refused, with the form that works."""

import pytest

from pml_analysis.analysis import Rejection, analyze
from pml_common.contracts.decision import Policy
from services.analyzer.tests.support.foreign_names import TOOLS, complaint, refused
from services.analyzer.tests.support.programs import tool

REFUSED = {
    "several tools": (
        "mcp.status({})",
        "1:1 status is no tool: write mcp.git.status(…) or mcp.hub.status(…).",
    ),
    "several spellings": (
        "mcp.hub.listAll({})",
        '1:1 "hub" has no tool "listAll": write mcp.hub["list-all"](…) or mcp.hub.list_all(…).',
    ),
    "several tools of one listed name": (
        "mcp.a_b_c({})",
        "1:1 a_b_c is no tool: write mcp.a.b_c(…) or mcp.a_b.c(…).",
    ),
    "several tools of another host": (
        "tools.status({})",
        "1:1 status is no tool: write mcp.git.status(…) or mcp.hub.status(…).",
    ),
    "a similar name": (
        "tools.behave.ecko({})",
        '1:1 "behave" has no tool "ecko". Did you mean behave:echo?',
    ),
    "a similar listed name": (
        "mcp.behave_ecko({})",
        "1:1 mcp.behave_ecko is no tool: call mcp.<server>.<tool>(…). "
        "Did you mean mcp.behave.echo(…)?",
    ),
    "a similar name of tools of mcp": (
        "mcp.tools.behave.ecko({})",
        '1:1 "behave" has no tool "ecko". Did you mean behave:echo?',
    ),
    "a name like no other": (
        "codemode.qqqqqq({})",
        "1:1 mcp.qqqqqq is no tool: call mcp.<server>.<tool>(…). "
        "Connected: a, a_b, behave, everything, file-system, git, hub, odd and 1 more.",
    ),
    "signs alone": (
        'mcp["_"]({})',
        "1:1 mcp._ is no tool: call mcp.<server>.<tool>(…). "
        "Connected: a, a_b, behave, everything, file-system, git, hub, odd and 1 more.",
    ),
    "a computed name": (
        "mcp.callTool(args.name, {})",
        "1:1 callTool is no function of mcp: write mcp.<server>.<tool>(…), or "
        'mcp.call("<server>:<tool>", …) where the name is computed.',
    ),
    "a computed name of a host": (
        "codemode.callTool(args.name)",
        "1:1 callTool is no function of mcp: write mcp.<server>.<tool>(…), or "
        'mcp.call("<server>:<tool>", …) where the name is computed.',
    ),
    "mcp.call of a name alone": (
        'mcp.call("status", {})',
        "1:1 status is no tool: write mcp.git.status(…) or mcp.hub.status(…).",
    ),
    "mcp.call of nothing": (
        'mcp.call("qqqqqq", {})',
        "1:1 mcp.call takes \"server:tool\"; this is 'qqqqqq'. "
        "Connected: a, a_b, behave, everything, file-system, git, hub, odd and 1 more.",
    ),
    "a server": (
        "mcp.behave({})",
        "1:1 behave is a server, not a tool: call mcp.behave.<tool>(…).",
    ),
    "tools themselves": (
        "tools({})",
        "1:1 mcp is not a tool: call one of its servers' tools, mcp.<server>.<tool>(…).",
    ),
    "a listed capability that is none": (
        "mcp.cap_fs_nothing({})",
        '1:1 There is no capability "fs_nothing".',
    ),
    "a request with more in it": (
        'mcp.callTool({ name: "behave_echo", timeout: 1 })',
        "1:1 callTool is no function of mcp: write mcp.<server>.<tool>(…), or "
        'mcp.call("<server>:<tool>", …) where the name is computed.',
    ),
}
UNREAD = {
    "a name twice": '{ name: "behave_echo", tool: "behave_echo" }',
    "no name": '{ server: "behave" }',
    "a computed server": '{ server: args.s, name: "echo" }',
    "a computed name": "{ name: args.n }",
    "a method": '{ name: "behave_echo", input() {} }',
    "a spread": '{ ...args, name: "behave_echo" }',
    "a computed key": '{ name: "behave_echo", [args.k]: 1 }',
    "a spread argument": '"behave_echo", ...args.all',
    "three arguments": '"behave_echo", {}, {}',
    "nothing": "",
    "a number": "1",
    "an object and more": '{ name: "behave_echo" }, 1',
    "a name after a call": '(await mcp.git.status({}), "behave_echo"), {}',
    "a tool that is none": '"behave_nothing", {}',
}


@pytest.mark.parametrize(("text", "told"), REFUSED.values(), ids=REFUSED)
def test_what_has_no_single_meaning_is_refused_with_the_form_that_works(
    text: str, told: str
) -> None:
    assert complaint(text) == told


@pytest.mark.parametrize("given", UNREAD.values(), ids=UNREAD)
def test_a_call_by_name_in_no_known_form_is_refused(given: str) -> None:
    assert complaint(f"mcp.callTool({given})").startswith("1:1 callTool is no function of mcp")


def test_no_call_in_a_name_is_dropped() -> None:
    told = complaint('mcp[(await mcp.git.status({}), "behave_echo")]({})')
    assert told == "1:1 behave_echo is no tool: write mcp.behave.echo(…)."


def test_a_template_tag_is_no_call_of_a_tool() -> None:
    assert complaint("mcp.behave_echo``").startswith("1:16 A tool takes one object")
    told = [each.message for each in refused("mcp.odd_then``").diagnostics]
    assert told[0].startswith("odd_then is no tool: write mcp.call(")
    told = [each.message for each in refused("mcp.callTool``").diagnostics]
    assert told[0].startswith("callTool is no function of mcp")
    assert analyze("tools.behave.echo``", tools=TOOLS, policy=Policy(), submitted=True) == analyze(
        "tools.behave.echo``", tools=TOOLS, policy=Policy()
    )


def test_a_free_function_that_calls_by_a_computed_name_is_refused_as_before() -> None:
    assert complaint("callTool(args.name)").startswith("1:1 callTool is called but not declared")


def test_a_stored_program_is_told_the_form_that_works() -> None:
    for text, told in {
        "mcp.behave_echo({})": "1:1 behave_echo is no tool: write mcp.behave.echo(…).",
        "mcp.everything.get_sum({})": (
            '1:1 "everything" has no tool "get_sum": write mcp.everything["get-sum"](…).'
        ),
        'mcp.call("odd_then", {})': '1:1 odd_then is no tool: write mcp.call("odd:then", …).',
    }.items():
        assert complaint(text, submitted=False) == told


def test_many_tools_of_one_name_are_told_in_part() -> None:
    tools = tuple(tool(f"s{n}:read") for n in range(9))
    outcome = analyze("mcp.read({})", tools=tools, policy=Policy(), submitted=True)
    assert isinstance(outcome, Rejection)
    assert outcome.diagnostics[0].message.endswith("or mcp.s4.read(…), or 4 more.")


def test_without_tools_a_listed_name_is_told_so() -> None:
    outcome = analyze("mcp.behave_echo({})", tools=(), policy=Policy(), submitted=True)
    assert isinstance(outcome, Rejection)
    assert outcome.diagnostics[0].message.startswith("behave_echo cannot be called: no tools are")
    assert outcome.missing_tools
