"""Texts that are no program: where, why, and never a crash."""

import pytest

from pml_analyzer.domain.analysis import Analysis, Rejection, analyze
from pml_analyzer.domain.readable import Limits
from pml_common.contracts.decision import Policy
from services.analyzer.tests.programs import TOOLS, complaints, rejected, tool

BROKEN = {
    "a missing value": ("const x = ;\nfoo()", '1:11 Unexpected ";".'),
    "a missing parenthesis": (
        "const a = 1;\nawait mcp.fs.read({ path: 'a' };",
        '2:32 Expected ")", to close "(" on line 2.',
    ),
    "a condition that is not closed": (
        "if (a { b(); }",
        '1:6 Expected ")", to close "(" on line 1.',
    ),
    "a block that is not closed": (
        "if (a) {\n  b();\n",
        '2:7 Expected "}", to close "{" on line 1.',
    ),
    "a block that is closed twice": ("if (a) {}\n}", '2:1 Unexpected "}".'),
    "an object that is not closed": ("f();\nreturn { a: 1", '2:8 "{" is never closed.'),
    "a call that is not closed": ("f(\n\n", '1:2 "(" is never closed.'),
    "closed and opened again": ("f(); g((1)", '1:7 "(" is never closed.'),
    "a value that is missing": ("return { a: 1, b: }", "1:18 Expected an expression here."),
    "an unfinished sum": (
        "const a = 1;\nconst b = a +\n",
        "2:14 The program ends in the middle of a statement.",
    ),
    "a text that is not closed": (
        "const é = 'abc;\nfoo()",
        "1:11 This text is never closed by a second quote.",
    ),
    "a template that is not closed": (
        "const a = '';\nconst b = `abc",
        "2:11 This text is never closed by a second quote.",
    ),
    "quotes inside what is broken": ("f('a' 'b' (\n", '1:11 "(" is never closed.'),
    "brackets inside what is broken": ("}a[]}", "1:6 The program ends"),
    "the last of several quotes": ("a''\"", "1:5 The program ends"),
    "a missing sign": ("const a await b();", '1:9 Unexpected "await".'),
    "two words": ("return 1;\na b c", '2:3 Unexpected "b".'),
    "a name that starts with a digit": ("let 1x = 3;", '1:5 Unexpected "1".'),
    "a missing separator": ("const a 1;", '1:9 Unexpected "1".'),
    "JSX": ("return <div/>;", "1:12 "),
    "code points count, not units": ("const a = '\U0001f600' 1;", '1:15 Unexpected "1".'),
}


@pytest.mark.parametrize(("code", "complaint"), BROKEN.values(), ids=BROKEN)
def test_a_syntax_error_says_where_and_what(code: str, complaint: str) -> None:
    told = complaints(code)
    assert any(line.startswith(complaint) for line in told), told
    assert len(told) <= 3


def test_a_syntax_error_shows_its_line() -> None:
    (told,) = rejected("const a = 1;\n  const b = ;\n").diagnostics
    assert told.source_line == "  const b = ;"


UNREADABLE = {
    "empty": ("", "1:1 The program is empty: write at least one statement."),
    "blank": (" \n\t\r\n", "1:1 The program is empty: write at least one statement."),
    "comments only": ("// nothing\n/* at all */", "1:1 The program is empty"),
    "a NUL": ("return 1;\n\0", "2:1 A NUL character cannot stand in a program."),
    "half a character": ("return '\ud800';", "1:9 This is half a character"),
}


@pytest.mark.parametrize(("code", "complaint"), UNREADABLE.values(), ids=UNREADABLE)
def test_an_unreadable_text_is_refused_clearly(code: str, complaint: str) -> None:
    (told,) = complaints(code)
    assert told.startswith(complaint)


def test_a_program_over_the_limit_is_refused_with_the_limit_named() -> None:
    (told,) = complaints("x" * (256 * 1024 + 1))
    assert told == "1:1 The program has 262,145 bytes; the limit is 262,144."


def test_the_limit_counts_bytes() -> None:
    outcome = analyze("'é'", tools=(), policy=Policy(), limits=Limits(source_bytes=3))
    assert isinstance(outcome, Rejection)


@pytest.mark.parametrize(
    "code",
    [
        "(" * 10_000 + "1" + ")" * 10_000,
        "[" * 10_000 + "]" * 10_000,
        "{" * 10_000 + "}" * 10_000,
        "a." * 10_000 + "b",
        "1+" * 10_000 + "1",
        "f(" * 10_000 + ")" * 10_000,
        "()=>" * 10_000 + "1",
        "if (1) " * 10_000 + "1;",
        "if (1) {} else " * 5_000 + "{}",
        "'é';" + "(" * 600 + "1" + ")" * 600,
        "a: " * 200 + "for (;;) mcp.fs.read({});",
        "for (;;) " * 200 + "mcp.fs.read({});",
        "if (1) {} else " * 200 + "mcp.fs.read({});",
    ],
)
def test_deep_nesting_is_a_clear_error_and_no_crash(code: str) -> None:
    outcome = analyze(code, tools=TOOLS, policy=Policy())
    assert isinstance(outcome, Rejection)
    assert outcome.diagnostics[0].message.startswith("This stands too deep inside other code")


@pytest.mark.parametrize(
    "code",
    [
        "return " + "(" * 200 + "1" + ")" * 200 + ";",
        "return " + "[" * 400 + "]" * 400 + ";",
        "return 1" + " + 1" * 400 + ";",
        "return a" + ".b" * 400 + ";",
        "const s = 'a'" + " + 'a'" * 400 + "; mcp[s].x();",
        "mcp.fs.read({ a: " + "[" * 200 + "1" + "]" * 200 + " });",
        "mcp.fs.read({ a: " + "{ a: " * 200 + "b" + "}" * 200 + " });",
        "a" + " ? 1 : a" * 100 + " ? mcp.fs.read({}) : 1;",
        "()=>" * 140 + "mcp.fs.read({});",
        "for (const a of b) " * 140 + "mcp.fs.read({});",
        "a && (" * 140 + "mcp.fs.read({})" + ")" * 140,
        "try { " * 140 + "mcp.fs.read({})" + "} finally { f(); }" * 140 + "function f() {}",
        "for (const a of await mcp.fs.list({})) " * 140 + "mcp.fs.read({});",
        "if (a) {} else " * 140 + "mcp.fs.read({});",
        "switch (a) { default: " * 140 + "mcp.fs.read({})" + "}" * 140,
        "a: {" * 140 + "mcp.fs.read({})" + "}" * 140,
    ],
)
def test_nesting_within_the_limits_is_followed_to_the_end(code: str) -> None:
    assert isinstance(analyze(code, tools=TOOLS, policy=Policy()), Analysis)


def test_more_nodes_than_a_person_can_approve_are_refused() -> None:
    (told,) = complaints("mcp.fs.read({});\n" * 1_001)
    assert told == (
        "1001:1 More than 1,000 calls and decisions: nobody can approve that; split it."
    )


def test_more_ways_than_can_be_drawn_are_refused() -> None:
    (told,) = complaints("a && mcp.fs.read({});\n" * 200)
    assert "more ways through this than 10,000 edges" in told


@pytest.mark.parametrize(
    ("code", "complaint"),
    [
        ("mcp.fs.raed({})", '"fs" has no tool "raed". Did you mean fs:read?'),
        (
            "mcp.fs.zzzzzz({})",
            '"fs" has no tool "zzzzzz". It has: create, list, read, stat, write.',
        ),
        ("mcp.fs.status({})", '"fs" has no tool "status". Did you mean fs:stat or git:status?'),
        ("mcp.gti.status()", 'There is no server "gti". Did you mean git:status?'),
        ("mcp.gti.zzzzzz()", 'There is no server "gti". Did you mean git?'),
        ("mcp.qqqq.read({})", 'There is no server "qqqq". Did you mean fs:read?'),
        (
            "mcp.qqqq.zzzz({})",
            'There is no server "qqqq". Connected: fs, git, http, json, server-x.',
        ),
        ("mcp.server_x.tool_y({})", 'There is no server "server_x". Did you mean server-x:tool-y?'),
    ],
)
def test_an_unknown_tool_or_server_names_near_matches(code: str, complaint: str) -> None:
    assert complaints(f"  {code}") == [f"1:3 {complaint}"]
    assert rejected(code).missing_tools


def test_a_tool_missing_twice_is_told_twice() -> None:
    assert len(complaints("mcp.fs.raed({}); mcp.fs.raed({});")) == 2


def test_a_long_list_of_tools_is_cut() -> None:
    tools = [tool(f"a:t{number}") for number in range(20)]
    outcome = analyze("mcp.a.zzz({})", tools=tools, policy=Policy())
    assert isinstance(outcome, Rejection)
    assert "It has: t0, t1, t10, t11, t12, t13, t14, t15 and 12 more." in (
        outcome.diagnostics[0].message
    )


def test_without_any_tool_it_says_how_to_add_some() -> None:
    outcome = analyze("mcp.fs.read({})", tools=(), policy=Policy())
    assert isinstance(outcome, Rejection)
    (told,) = outcome.diagnostics
    assert told.message.startswith("fs:read cannot be called: no tools are connected.")
    assert "mcpServers" in told.message


def test_other_problems_hide_that_only_tools_are_missing() -> None:
    assert not rejected("mcp.fs.raed({}); eval(1)").missing_tools
