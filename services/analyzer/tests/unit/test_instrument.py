"""The instrumented program: the author's text, with node ids and outcomes."""

import pytest

from services.analyzer.tests.support.programs import SOURCES_EXAMPLE, analysed

CASES = {
    "a call": ("await mcp.fs.read({});", 'await __pml.at("n1", mcp.fs.read)({});'),
    "a call by name": (
        "mcp.call('fs:read', {});",
        "__pml.at(\"n1\", mcp.call)('fs:read', {});",
    ),
    "an alias": (
        "const r = mcp.fs.read; r({});",
        'const r = mcp.fs.read; __pml.at("n1", r)({});',
    ),
    "a call in a call": (
        "mcp.fs.write({ c: mcp.fs.read({}) });",
        '__pml.at("n1", mcp.fs.write)({ c: __pml.at("n2", mcp.fs.read)({}) });',
    ),
    "brackets": ("mcp['fs']['read']({});", "__pml.at(\"n1\", mcp['fs']['read'])({});"),
    "a chain": (
        "mcp.fs.read({}).then((x) => x);",
        '__pml.at("n1", mcp.fs.read)({}).then((x) => x);',
    ),
    "an optional call": ("mcp.fs.read?.({});", '__pml.at("n1", mcp.fs.read)?.({});'),
    "an optional chain stays optional": (
        "mcp?.fs.read({}).a;",
        '__pml.at("n1", mcp?.fs.read)?.({}).a;',
    ),
    "an optional call of an optional chain": (
        "mcp?.fs.read?.({});",
        '__pml.at("n1", mcp?.fs.read)?.({});',
    ),
    "with type arguments": (
        "mcp?.fs.read<X>({});",
        '__pml.at("n1", mcp?.fs.read)?.<X>({});',
    ),
    "an optional chain that ended": (
        "(mcp?.fs.read)({});",
        '__pml.at("n1", (mcp?.fs.read))({});',
    ),
    "a cast": ("(mcp.fs.read as any)({});", '__pml.at("n1", (mcp.fs.read as any))({});'),
    "if": ("if (1 > 2) {}", 'if (__pml.decide("d1", 1 > 2)) {}'),
    "else if": (
        "if (1) {} else if (2) {}",
        'if (__pml.decide("d1", 1)) {} else if (__pml.decide("d2", 2)) {}',
    ),
    "a comma in a condition": ("if (1, 2) {}", 'if (__pml.decide("d1", (1, 2))) {}'),
    "a comment in a condition": (
        "if (1 // one\n) {}",
        'if (__pml.decide("d1", 1) // one\n) {}',
    ),
    "a call as a condition": (
        "if (await mcp.fs.stat({})) {}",
        'if (__pml.decide("d1", await __pml.at("n1", mcp.fs.stat)({}))) {}',
    ),
    "a conditional expression": (
        "mcp.fs.stat() ? mcp.fs.read() : 1;",
        '__pml.decide("d1", __pml.at("n1", mcp.fs.stat)()) ? __pml.at("n2", mcp.fs.read)() : 1;',
    ),
    "free names": ("return path;", "const { path } = args; return path;"),
    "several free names": ("return [b, a, b];", "const { b, a } = args; return [b, a, b];"),
    "params": ("return params.a;", "const params = args; return params.a;"),
    "params, input and free names": (
        "return [params.a, input.b, c];",
        "const { c } = args; const input = args; const params = args;"
        " return [params.a, input.b, c];",
    ),
    "own args": ("const args = 1; return a;", "const { a } = context; const args = 1; return a;"),
    "names bound in every run": (
        "return [args.a, context.b, console.log, mcp.fs, Math.PI];",
        "return [args.a, context.b, console.log, mcp.fs, Math.PI];",
    ),
    "escaped free names": ("return p\\u0061th;", "const { path } = args; return p\\u0061th;"),
    "a dynamic call is left as it is": (
        "mcp[args.s].read({});",
        "mcp[args.s].read({});",
    ),
    "a dropped promise of a local function": (
        "async function f() { await mcp.fs.read({}); }\nf();",
        'async function f() { await __pml.at("n1", mcp.fs.read)({}); }\n__pml.dropped(2, 1, f());',
    ),
    "a dropped chain": (
        "(async () => { await mcp.fs.read({}); })().catch(() => 1);",
        '__pml.dropped(1, 1, (async () => { await __pml.at("n1", mcp.fs.read)({}); })()'
        ".catch(() => 1));",
    ),
    "a promise that nobody reads": (
        "const f = async () => await mcp.fs.read({}); const x = f();",
        'const f = async () => await __pml.at("n1", mcp.fs.read)({});'
        " const x = __pml.dropped(1, 56, f());",
    ),
    "code points": (
        "'\U0001f600'; mcp.fs.read({});",
        "'\U0001f600'; __pml.at(\"n1\", mcp.fs.read)({});",
    ),
    "a byte order mark": ("\ufeffreturn a;", "const { a } = args; \ufeffreturn a;"),
}


@pytest.mark.parametrize(("code", "expected"), CASES.values(), ids=CASES)
def test_calls_and_decisions_are_marked(code: str, expected: str) -> None:
    assert analysed(code).instrumented == expected


def test_no_line_is_added_or_moved() -> None:
    before = SOURCES_EXAMPLE.splitlines()
    after = analysed(SOURCES_EXAMPLE).instrumented.splitlines()
    assert len(after) == len(before)
    assert after[0] == (
        'const { path } = args; const file = await __pml.at("n1", mcp.fs.stat)({ path });'
    )
    assert after[1] == 'if (__pml.decide("d1", file.exists)) {'
    assert after[3] == before[3]
