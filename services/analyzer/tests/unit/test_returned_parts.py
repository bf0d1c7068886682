"""Parts of tools' results that a program returns: marked where no output schema names them."""

import re

import pytest

from pml_analysis.analysis import Analysis, analyze
from pml_common.contracts.decision import Policy
from pml_common.contracts.tool import JsonObject
from services.analyzer.tests.support.library import calling, described, library
from services.analyzer.tests.support.programs import analysed, submitted, tool

R = "const r = await mcp.fs.list({ path: 'a' }); "
CONTENT = '"n1", ["content", 0, "text"]'
_MARK = re.compile(r"__pml_returned\((\"n\d+\", \[.*?\]), (\".*?\"), (\d+), (\d+), ")


def marks(code: str) -> list[tuple[str, str]]:
    """Return the node with the path, and the author's text, of each mark, in order."""
    return [(found[1], found[2]) for found in _MARK.finditer(analysed(code).instrumented)]


MARKED = {
    "a chain": (f"{R} return r.content[0].text", CONTENT, '"r.content[0].text"'),
    "an optional chain": (
        f"{R} return r?.content?.[0]?.text",
        CONTENT,
        '"r?.content?.[0]?.text"',
    ),
    "awaited on the spot": (
        "return (await mcp.fs.list({})).a",
        '"n1", ["a"]',
        '"(await mcp.fs.list({})).a"',
    ),
    "a name": (f"{R} const t = r.content[0].text; return t", CONTENT, '"t"'),
    "destructured": ("const { a } = await mcp.fs.list({}); return a", '"n1", ["a"]', '"a"'),
    "a cast": (f"{R} return (r as any).a!", '"n1", ["a"]', '"(r as any).a"'),
    "in parentheses, after a comma": (f"{R} return (1, r.a)", '"n1", ["a"]', '"r.a"'),
    "assigned": (f"{R} let x; return x = r.a", '"n1", ["a"]', '"r.a"'),
    "assigned where it is missing": (f"{R} let x; return x ??= r.a", '"n1", ["a"]', '"r.a"'),
    "the last choice": (f"{R} return r.a ?? r.b", '"n1", ["b"]', '"r.b"'),
    "the last alternative": (f"{R} return r.a || r.b", '"n1", ["b"]', '"r.b"'),
    "awaited again": (f"{R} return await r.a", '"n1", ["a"]', '"await r.a"'),
    "in a branch": (f"{R} if (r.ok) {{ return r.a }} return 1", '"n1", ["a"]', '"r.a"'),
    "in a loop": (
        f"{R} for (const f of r.files) {{ return f.x }}",
        '"n1", ["files", null, "x"]',
        '"f.x"',
    ),
    "of a local function": (
        "const get = async () => { const r = await mcp.fs.list({}); return r.a };"
        " const x = await get(); return x",
        '"n1", ["a"]',
        '"x"',
    ),
    "beside a finally": (
        f"{R} try {{ return r.a }} finally {{ console.log(1) }}",
        '"n1", ["a"]',
        '"r.a"',
    ),
    "by name": ("const r = await mcp.call('fs:list', {}); return r.a", '"n1", ["a"]', '"r.a"'),
    "a part that the schema does not name": (
        "const r = await mcp.fs.stat({ path: 'a' }); return r.content",
        '"n1", ["content"]',
        '"r.content"',
    ),
}


@pytest.mark.parametrize(("code", "part", "text"), MARKED.values(), ids=MARKED)
def test_a_returned_part_is_marked(code: str, part: str, text: str) -> None:
    assert marks(code) == [(part, text)]


OF_FUNCTIONS = {
    "called at once": "return await (async () => { RETURNS })()",
    "an arrow that returns nothing else": "return (async () => (await mcp.fs.list({})).b)()",
    "by its name": "async function main() { RETURNS } return await main();",
    "of one that calls another": (
        "const inner = async () => { RETURNS }; const main = () => inner(); return main();"
    ),
}
RETURNS = f"{R} if (r.x) return r.a; return r.b"


@pytest.mark.parametrize("code", OF_FUNCTIONS.values(), ids=OF_FUNCTIONS)
def test_what_a_function_returns_is_marked_where_it_is_written(code: str) -> None:
    found = [text for _, text in marks(code.replace("RETURNS", RETURNS))]
    assert found in (['"r.a"', '"r.b"'], ['"(await mcp.fs.list({})).b"'])


def test_both_branches_of_a_choice_are_marked() -> None:
    assert [text for _, text in marks(f"{R} return r.x ? r.a : r.b")] == ['"r.a"', '"r.b"']
    assert [text for _, text in marks(f"{R} return r.a && r.b")] == ['"r.b"']


def test_the_text_of_a_part_is_the_authors() -> None:
    code = "return (await tools.fs.list( {} )).foo"
    (mark,) = _MARK.finditer(submitted(code).instrumented)
    assert mark[2] == '"(await tools.fs.list( {} )).foo"'


def test_a_program_that_is_completed_is_marked_as_it_runs() -> None:
    code = "async () => {\n  const r = await mcp.fs.list({});\n  return r.content[0].text;\n}"
    (mark,) = _MARK.finditer(submitted(code).instrumented)
    assert mark.groups() == (CONTENT, '"r.content[0].text"', "3", "10")
    (mark,) = _MARK.finditer(submitted("const r = await mcp.fs.list({});\nr.a").instrumented)
    assert mark.groups() == ('"n1", ["a"]', '"r.a"', "2", "1")


UNMARKED = {
    "a whole result": f"{R} return r",
    "a part that its author knows may be missing": f"{R} return r.user?.name",
    "an element that may be missing": f"{R} return r?.[0]",
    "an object": f"{R} return {{ a: r.a }}",
    "an argument": "return args.a",
    "nothing": f"{R} return",
    "a part that the schema names": "const r = await mcp.fs.read({ path: '' }); return r.content",
    "a part with a default": f"{R} return r.a ?? null",
    "a part that has a default by its pattern": (
        "const { a = 1 } = await mcp.fs.list({}); return a"
    ),
    "a computed key": f"{R} return r[args.k]",
    "a part that the program writes": f"{R} r.a = args.x; return r.a",
    "one of several results": (
        "let r = await mcp.fs.list({}); r = await mcp.git.status({}); return r.a"
    ),
    "a method's result": f"{R} return r.a.map((x) => x)",
    "of another function": f"{R} [1].map(() => {{ return r.a }}); return 1",
    "of a function that is called twice": (
        "const get = async () => { const r = await mcp.fs.list({}); if (r.x) return r.a;"
        " return r.b }; await get(); return await get()"
    ),
    "of a function that calls itself": (
        "async function f() { const r = await mcp.fs.list({}); if (r.x) return f();"
        " return r.b } return await f()"
    ),
    "of a function that is handed out": (
        "const get = async () => { const r = await mcp.fs.list({}); if (r.x) return r.a;"
        " return r.b }; setTimeout(get); return await get()"
    ),
    "replaced in the end": f"{R} try {{ return r.a }} finally {{ return args.x }}",
    "a function that is chosen": f"{R} return (args.x ? f : g)(r)",
    "the caller's function": "return await args.f()",
}


@pytest.mark.parametrize("code", UNMARKED.values(), ids=UNMARKED)
def test_nothing_else_is_marked(code: str) -> None:
    assert "__pml_returned" not in analysed(code).instrumented


@pytest.mark.parametrize(
    "call",
    [
        "capabilities.fs_read_json({})",
        "mcp.cap.fs_read_json({})",
        "mcp.call('cap:fs:read_json', {})",
    ],
)
def test_what_a_capability_gives_is_not_marked(call: str) -> None:
    code = f"const r = await {call}; return r.a;"
    assert "__pml_returned" not in calling(code).instrumented


def test_a_capability_inside_another_program_is_not_marked() -> None:
    inner = described("fs:part", "const r = await mcp.fs.list(args); return r.a;")
    analysis = calling("return await capabilities.fs_part({});", library(inner))
    (one,) = analysis.injected
    assert "__pml_returned" not in one.instrumented
    assert "__pml_returned" in analysed(inner.code).instrumented


SCHEMAS: dict[str, tuple[JsonObject, str, bool]] = {
    "a field of an item": (
        {"type": "array", "items": {"type": "object", "properties": {"a": {}}}},
        "r[0].a",
        False,
    ),
    "another field of an item": (
        {"type": "array", "items": {"type": "object", "properties": {"a": {}}}},
        "r[0].b",
        True,
    ),
    "an item": ({"type": "array"}, "r[0]", False),
    "a field of one alternative": (
        {"anyOf": [{"type": "null"}, {"type": "object", "properties": {"a": {}}}]},
        "r?.a",
        False,
    ),
    "a field of any name": (
        {"type": "object", "additionalProperties": {"type": "string"}},
        "r.a",
        False,
    ),
    "a field of a name by pattern": (
        {"type": "object", "patternProperties": {"^a": {}}},
        "r.a",
        False,
    ),
    "an object that may have more": (
        {"type": "object", "properties": {}, "additionalProperties": True},
        "r.a",
        True,
    ),
}


@pytest.mark.parametrize(("gives", "part", "marked"), SCHEMAS.values(), ids=SCHEMAS)
def test_a_schema_names_parts(gives: JsonObject, part: str, *, marked: bool) -> None:
    code = f"const r = await mcp.a.b({{}}); return {part};"
    outcome = analyze(code, tools=[tool("a:b", gives=gives)], policy=Policy())
    assert isinstance(outcome, Analysis), outcome
    assert ("__pml_returned" in outcome.instrumented) == marked


def test_a_long_text_is_cut_and_on_one_line() -> None:
    keys = "\n  .a" * 60
    ((_, text),) = marks(f"{R} return r{keys}")
    assert len(text) == len('""') + 100 + len(r"\u2026")
    assert text.startswith('"r .a .a')


def test_the_text_without_insertions_is_the_authors() -> None:
    analysis = analysed(f"{R} return r.a ?? r.b;")
    text, at = "", 0
    for start, end in analysis.insertions:
        text, at = text + analysis.instrumented[at:start], end
    assert text + analysis.instrumented[at:] == f"{R} return r.a ?? r.b;"


def test_a_sandbox_without_the_report_returns_the_value() -> None:
    text = analysed(f"{R} return r.a").instrumented
    assert text.startswith(
        "const __pml_returned = __pml.returned ?? ((...given) => given[5]); const r = "
    )
    assert 'return __pml_returned("n1", ["a"], "r.a", 1, 53, r.a)' in text
