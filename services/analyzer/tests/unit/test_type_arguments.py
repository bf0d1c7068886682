"""Calls with type arguments that the grammar misreads, and those it reads rightly."""

import pytest

from services.analyzer.tests.support.programs import analysed, complaints, nodes

CALL = "A call with type arguments is ambiguous here: put it in parentheses."
CLOSING = "What follows > is ambiguous here"
WRITE = 'mcp.fs.write<any>({ path: "a", content: "b" })'

HIDING = {
    "!": (f"!{WRITE};", f"1:1 {CALL}"),
    "typeof": (f"return typeof {WRITE};", f"1:8 {CALL}"),
    "void await": (f"void await {WRITE};", f"1:1 {CALL}"),
    "await void": (f"await void {WRITE};", f"1:1 {CALL}"),
    "+": (f"return args.a + {WRITE};", f"1:8 {CALL}"),
    "a member of the result": (f"delete {WRITE}.b;", f"1:1 {CALL}"),
    "a later call": (f"let a: any; -{WRITE}.b<any>();", f"1:13 {CALL}"),
    "not null": ("return !mcp.git.status!<any>();", f"1:8 {CALL}"),
    "a tag": ("typeof mcp.fs.write<any>`x`;", f"1:25 {CLOSING}"),
    "a division": (f"let a, b, g; typeof a<b>/1+{WRITE}/g;", f"1:25 {CLOSING}"),
    "a comment in one": ("let a, b, g; typeof a<b>/<!--b/g.y\n+1;", f"1:25 {CLOSING}"),
    "nested": ("let a, b, c; typeof a<b<c>>/1/g;", f"1:28 {CLOSING}"),
    "a union": ("let a, b, c; typeof a<b | c>/1/g;", f"1:29 {CLOSING}"),
    "a cast": (
        'let a;\n<any>mcp.fs.write<a|a>({path:"a",content:"b"})\n',
        f"2:23 {CLOSING}",
    ),
    "a function type": (
        'mcp.fs.write<(p: any)=>any>({path:"a",content:"b"}) as any\n',
        f"1:28 {CLOSING}",
    ),
    "arguments": ("let a; [a].map(a < a, mcp.fs.write<any, any>({}));", f"1:45 {CLOSING}"),
    "nested in arguments": (
        "let a; [a].map(a < a, mcp.fs.write<a<a>>({}));",
        f"1:41 {CLOSING}",
    ),
}
READ = {
    "a call": f"{WRITE};",
    "awaited": f"await {WRITE};",
    "in parentheses": f"return !({WRITE});",
    "an argument": f"return [{WRITE}, 1];",
}
HONEST = {
    "comparisons": "const { a, b } = args; return a < b && a > (b) && b > 1 && (b > (a));",
    "a comparison of a call": "const f = (a) => a; return f(1) > (f(2)) || f<any>(1) > 2;",
    "shifts": "return args.a >> (1) >>> 2;",
    "arrows": "return [() => /a/g, () => `a`, <any>/a/g];",
}


@pytest.mark.parametrize(("code", "complaint"), HIDING.values(), ids=HIDING)
def test_what_is_misread_is_refused(code: str, complaint: str) -> None:
    assert any(told.startswith(complaint) for told in complaints(code)), complaints(code)


@pytest.mark.parametrize("code", READ.values(), ids=READ)
def test_what_is_read_rightly_is_a_node(code: str) -> None:
    assert "n1 fs:write" in nodes(analysed(code))


@pytest.mark.parametrize("code", HONEST.values(), ids=HONEST)
def test_comparisons_are_allowed(code: str) -> None:
    assert analysed(code).diagnostics == ()
