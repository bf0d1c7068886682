"""HTML-like comments: what an engine skips and the grammar reads, and the other way round."""

import pytest

from services.analyzer.tests.support.programs import analysed, complaints, rejected

OPENED = "HTML comments are not allowed: write // or /* */; to compare, put a space: < !--."
CLOSED = "HTML comments are not allowed, and --> first on a line begins one"

HIDING = {
    "after an expression": (
        "let a = 1, b = 2; a <!--b /*\nreturn 'hidden'; //*/",
        f"1:21 {OPENED}",
    ),
    "without blanks": ("let a=1,b=2; if (a<!--b) /*\n) return 'hidden'; //*/\n;", f"1:19 {OPENED}"),
    "before a text": ("let a = 1, b = 2; a <!--b + `\nreturn 'hidden'; //`", f"1:21 {OPENED}"),
    "with another in its comment": (
        "let a = 1, b = 2; a <!--b /* <!-- */ /*\nreturn 'hidden'; //*/",
        f"1:21 {OPENED}",
    ),
    "after honest ones": (
        "let a = '<!--', b = /-->/.lastIndex; // <!--\na <!--b /*\nreturn 'hidden'; //*/",
        f"2:3 {OPENED}",
    ),
    "beside characters of two bytes": (
        "let a = '\u00e9', b = 2; a <!--b /*\nreturn 'hidden'; //*/",
        f"1:23 {OPENED}",
    ),
    "before the end of a line": ("let b = 2; return args.a <!--b\n|| 'hidden';", f"1:26 {OPENED}"),
    "where no operator fits": ("<!-- /*\nreturn 'hidden'; //*/", f"1:1 {OPENED}"),
    "an end on a line": ("let a = 1; a\n--> 0 /*\nreturn 'hidden'; //*/", f"2:1 {CLOSED}"),
    "an end after blanks": ("let a = 1; a\n \t--> 0 /*\nreturn 'hidden'; //*/", f"2:3 {CLOSED}"),
    "an end after a carriage return": (
        "let a = 1; a\r--> 0 /*\nreturn 'hidden'; //*/",
        f"2:1 {CLOSED}",
    ),
    "an end after a comment's lines": (
        "let a = 1; while (a /*\n*/ --> 0 /*\n) return 'hidden'; //*/) break;",
        f"2:4 {CLOSED}",
    ),
    "an end after a comment with a separator": (
        "let a = 1; while (a /*\u2028*/ --> 0 /*\n) return 'hidden'; //*/) break;",
        f"2:4 {CLOSED}",
    ),
    "an end after blanks beyond ASCII": (
        "let a = 1; while (a /*\n*/\u00a0\u3000--> 0 /*\n) return 'hidden'; //*/) break;",
        f"2:5 {CLOSED}",
    ),
    "an end after several comments": (
        "let a = 1; while (a /*\n*/ /* <!-- *//**/--> 0 /*\n) return 'hidden'; //*/) break;",
        f"2:18 {CLOSED}",
    ),
}
"""Programs that return `hidden` where the sign begins a comment, with the complaint."""

HONEST: dict[str, tuple[str, object]] = {
    "counting down": ("let n = 3, c = 0; while (n-->0) c++; return c;", 3),
    "counting down with blanks": ("let n = 3, c = 0; while (n --> 0) c++; return c;", 3),
    "after a comment on its line": ("let n = 1; return n /* a */ --> 0;", True),
    "after a value that begins above": ("const o = { a: 1 }; return o[`a`\n]-->0;", True),
    "after a text of two lines": ("const o = { 'a\\\nb': 1 }; return o['a\\\nb']-->0;", True),
    "a comparison with a space": ("let a = 1, b = 2; return a < !--b;", False),
    "texts": ("return '<!--' + `\n-->${'<!--'}<!--` + '\\\n-->';", "<!--\n--><!--<!---->"),
    "regular expressions": ("return '<!-- a -->b'.replace(/<!--[^]*?-->/g, '');", "b"),
    "comments": ("// <!-- /*\n/* <!--\n--> */ return 1; // -->", 1),
    "types": ("type A = `<!--${string}`; const a: A = '<!--'; return a;", "<!--"),
}
"""Programs without such comments, with what they return."""


@pytest.mark.parametrize(("code", "complaint"), HIDING.values(), ids=HIDING)
def test_a_sign_that_engines_take_for_a_comment_is_refused(code: str, complaint: str) -> None:
    assert complaints(code)[0].startswith(complaint)


@pytest.mark.parametrize(("code", "_"), HONEST.values(), ids=HONEST)
def test_signs_elsewhere_are_allowed(code: str, _: object) -> None:
    assert analysed(code).diagnostics == ()


def test_a_sign_in_a_templates_code_is_refused() -> None:
    assert complaints("return `<!--${args.a <!--args.b}-->`;")[0].startswith(f"1:22 {OPENED}")


@pytest.mark.parametrize(("before", "column"), [("", 1), ("\ufeff", 2), ("/* a */ ", 9)])
def test_the_first_line_begins_with_the_text(before: str, column: int) -> None:
    told = complaints(f"{before}--> a\nreturn 1;")
    assert told[0].startswith(f"1:{column} {CLOSED}")


def test_each_sign_is_told_once() -> None:
    told = rejected("let a = 1;\n<!-- a <!-- b\n--> c --> d\nreturn a <!--a;").diagnostics
    assert [(one.line, one.column) for one in told] == [(2, 1), (2, 8), (3, 1), (4, 10)]


def test_an_end_in_the_middle_of_a_line_that_the_grammar_skips_is_refused() -> None:
    assert complaints("args.a; --> a\nreturn 1;") == [
        "1:9 HTML comments are not allowed: write // or /* */."
    ]
