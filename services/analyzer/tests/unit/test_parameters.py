"""What the caller may hand in."""

import pytest

from pml_common.contracts.tool import JsonObject
from services.analyzer.tests.programs import analysed, complaints

TEXT: JsonObject = {"type": "string"}
CASES: dict[str, tuple[str, JsonObject, list[str]]] = {
    "none": ("return 1;", {}, []),
    "args": ("return args.a;", {"a": {}}, ["a"]),
    "every name for them": (
        "return [args.a, context['b'], params.c, input.d];",
        {"a": {}, "b": {}, "c": {}, "d": {}},
        ["a", "b", "c", "d"],
    ),
    "free names": ("return path + size;", {"path": {}, "size": {}}, ["path", "size"]),
    "in the order they are met": ("return [b, args.a, b];", {"b": {}, "a": {}}, ["b", "a"]),
    "destructured": (
        "const { a, b: { c }, ['d']: e, ...rest } = args; return rest.f;",
        {"a": {}, "b": {}, "d": {}, "f": {}},
        ["a", "b", "d", "f"],
    ),
    "by another name": ("const all = args; const x = all.a; return x;", {"a": {}}, ["a"]),
    "an unknown key": ("return args[args.k];", {"k": {}}, ["k"]),
    "all of them": ("return JSON.stringify(args);", {}, []),
    "in parentheses": ("return (args as any).a;", {"a": {}}, ["a"]),
    "input as a name of its own": ("return input;", {"input": {}}, ["input"]),
    "params opened by a pattern": ("const { a } = params; return a;", {"a": {}}, ["a"]),
    "defaults": (
        "const { a = 1, b = now() } = args; const c = args.c ?? 'x'; let d = args.d || null;"
        " function now() {}",
        {
            "a": {"type": "number", "default": 1},
            "b": {},
            "c": {"type": "string", "default": "x"},
            "d": {},
        },
        [],
    ),
    "types by comparison": (
        "return [a === 'x', 'x' !== b, c > 1, d == true, e === 'x', e === 1, f < g];",
        {
            "a": TEXT,
            "b": TEXT,
            "c": {"type": "number"},
            "d": {"type": "boolean"},
            "e": {},
            "f": {},
            "g": {},
        },
        ["a", "b", "c", "d", "e", "f", "g"],
    ),
    "what is tested may be left out": (
        "if (a) {} if (b === undefined) {} typeof c; !d; e?.x; f && 1; g ? 1 : 2; 1 && h; 1 ?? i;",
        {name: {} for name in "abcdefghi"},
        ["h", "i"],
    ),
    "parts say nothing of the whole": ("return a.b === 'x';", {"a": {}}, ["a"]),
    "deep parts": ("const { a: { b = 1 } } = args; if (b) {}", {"a": {}}, ["a"]),
    "types of the tools they go to": (
        "await mcp.fs.read({ path: p, limit: args.n });",
        {"p": TEXT, "n": {"type": "number"}},
        ["p", "n"],
    ),
    "tools that disagree": (
        "await mcp.fs.read({ path: p }); await mcp.fs.read({ limit: p, q: p });",
        {"p": {}},
        ["p"],
    ),
    "parameters of functions are not the caller's": (
        "const f = ({ a }, b = args.c) => a + b; f({});",
        {"c": {}},
        ["c"],
    ),
}


@pytest.mark.parametrize(("code", "properties", "required"), CASES.values(), ids=CASES)
def test_parameters_are_inferred(code: str, properties: JsonObject, required: list[str]) -> None:
    schema = analysed(code).parameters_schema
    assert schema == {"type": "object", "properties": properties, "required": required}
    assert isinstance(schema["properties"], dict)
    assert list(schema["properties"]) == list(properties)


def test_a_name_that_is_called_is_no_parameter() -> None:
    assert complaints("helper(1);\nnew Thing();") == [
        "1:1 helper is called but declared nowhere: what the caller hands in is data.",
        "2:5 Thing is called but declared nowhere: what the caller hands in is data.",
    ]


def test_parameters_need_a_way_to_reach_the_arguments() -> None:
    (complaint,) = complaints("const args = 1, context = 2; return path;")
    assert complaint == "1:7 args and context are both declared: give one of them another name."
