"""Texts that are no program: the position, the reason, and never a crash."""

import pytest

from pml_analysis.analysis import Rejection, analyze
from pml_analysis.capability_reading import read_capability
from pml_common.contracts.decision import Policy
from services.analyzer.tests.support.library import described
from services.analyzer.tests.support.programs import complaints, rejected, tool

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
    "JSX": (
        "return <div/>;",
        "1:8 JSX is not supported: a program is TypeScript; build a text, or an object.",
    ),
    "JSX with children": ("const a = <p>{mcp.fs.read({})}</p>;", "1:11 JSX is not supported"),
    "JSX and more": ("const a = <p/> +;", "1:13 "),
    "broken as JSX too": ("const a = </b>;", '1:11 Unexpected "<".'),
    "no JSX": ("const a = '</p>';\nconst = 1;", '2:7 Unexpected "=".'),
    "code points count, not units": ("const a = '\U0001f600' 1;", '1:15 Unexpected "1".'),
}


@pytest.mark.parametrize(("code", "complaint"), BROKEN.values(), ids=BROKEN)
def test_a_syntax_error_says_where_and_what(code: str, complaint: str) -> None:
    told = complaints(code)
    assert any(line.startswith(complaint) for line in told), told
    assert len(told) <= 3


def test_a_rejection_says_whether_it_was_the_syntax() -> None:
    assert rejected("const = 1;").kind == "syntax"
    assert rejected("eval(1);").kind == "rejected"


def test_a_syntax_error_shows_its_line() -> None:
    (told,) = rejected("const a = 1;\n  const b = ;\n").diagnostics
    assert told.source_line == "  const b = ;"


UNREADABLE = {
    "empty": ("", "1:1 The program is empty: write at least one statement."),
    "blank": (" \n\t\r\n", "1:1 The program is empty: write at least one statement."),
    "comments only": ("// nothing\n/* at all */", "1:1 The program is empty"),
    "a NUL": ("return 1;\n\0", "2:1 A program cannot contain a NUL character: write \\0."),
    "half a character": (
        "return '\ud800';",
        "1:9 This is half a character, a lone surrogate: write it as an escape, \\ud800.",
    ),
}


@pytest.mark.parametrize(("code", "complaint"), UNREADABLE.values(), ids=UNREADABLE)
def test_an_unreadable_text_is_refused_clearly(code: str, complaint: str) -> None:
    (told,) = complaints(code)
    assert told.startswith(complaint)


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


@pytest.mark.parametrize("name", ["then", "toJSON", "toString", "valueOf"])
def test_a_tool_of_a_name_that_the_language_looks_up_is_called_by_its_id(name: str) -> None:
    told = f"mcp.odd.{name} is no tool: a tool of such a name is called by its id, "
    by_id = f'mcp.call("odd:{name}", {{…}})'
    for code in (f"mcp.odd.{name}({{}})", f"const f = mcp['odd'].{name}; f({{}})"):
        assert any(told + by_id in line for line in complaints(code)), code
    called = f"await mcp.call('odd:{name}', {{}})"
    outcome = analyze(called, tools=[tool(f"odd:{name}")], policy=Policy())
    assert not isinstance(outcome, Rejection)


@pytest.mark.parametrize(
    ("code", "by_id"),
    [
        ("mcp.odd.constructor({})", 'mcp.call("odd:constructor", {…})'),
        ("mcp.odd['__proto__']({})", 'mcp.call("odd:__proto__", {…})'),
        ("mcp.constructor.read({})", 'mcp.call("constructor:<tool>", {…})'),
    ],
)
def test_a_tool_behind_a_refused_member_is_called_by_its_id(code: str, by_id: str) -> None:
    end = f"a tool of such a name is called by its id, {by_id}."
    assert any(told.endswith(end) for told in complaints(f"await {code};"))


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


def test_errors_that_take_long_to_find_are_told_as_too_many() -> None:
    told = complaints("\u00e9;" + "case 1:" * 2_000)
    assert "The text before this has too many syntax errors" in told[0]
    assert rejected("case 1:" * 2_000).kind == "syntax"
    capability = read_capability(described("fs:broken", "case 1:" * 2_000))
    assert "The text before this" in (capability.fault or "")
