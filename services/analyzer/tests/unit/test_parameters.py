"""Parameters of programs, required and optional."""

import pytest

from pml_common.contracts.tool import JsonObject
from services.analyzer.tests.support.parameters import NUMBER, TEXT, Cases, check, fields, listed
from services.analyzer.tests.support.programs import analysed, complaints

NAMES: Cases = {
    "none": ("return 1;", {}, []),
    "args": ("return args.a;", {"a": {}}, ["a"]),
    "every name for them": (
        "return [args.a, context['b'], params.c, input.d];",
        {"a": {}, "b": {}, "c": {}, "d": {}},
        ["a", "b", "c", "d"],
    ),
    "free names": ("return [path, size];", {"path": {}, "size": {}}, ["path", "size"]),
    "in the order they are met": ("return [b, args.a, b];", {"b": {}, "a": {}}, ["b", "a"]),
    "destructured": (
        "const { a, b: { c }, ['d']: e, ...rest } = args; return rest.f;",
        {"a": {}, "b": fields("c"), "d": {}, "f": {}},
        ["a", "b", "d", "f"],
    ),
    "by another name": ("const all = args; const x = all.a; return x;", {"a": {}}, ["a"]),
    "an unknown key": ("return args[args.k];", {"k": {}}, ["k"]),
    "all of them": ("return JSON.stringify(args);", {}, []),
    "in parentheses": ("return (args as any).a;", {"a": {}}, ["a"]),
    "input as a name of its own": ("return input;", {"input": {}}, ["input"]),
    "params opened by a pattern": ("const { a } = params; return a;", {"a": {}}, ["a"]),
    "what is written is not read": (
        "args.a = 1; args.b.c = args.d;",
        {"b": {}, "d": {}},
        ["b", "d"],
    ),
    "parameters of functions are not the caller's": (
        "const f = ({ a }, b = args.c) => a + b; f({});",
        {"c": {}},
        ["c"],
    ),
}

FUNCTIONS: Cases = {
    "a function for everything": (
        "async function main({ path, limit = 10 }) { await mcp.fs.read({ path, limit }); }"
        " await main(args);",
        {"path": TEXT, "limit": {**NUMBER, "default": 10}},
        ["path"],
    ),
    "a function called where it is written": (
        "await (async ({ a = 'x' }) => a)(args);",
        {"a": {**TEXT, "default": "x"}},
        [],
    ),
    "functions that hand on": (
        "const f = (o) => g((o).user!); const g = (u) => u.name.trim(); f(args);",
        {"user": fields("name", name=TEXT)},
        ["user"],
    ),
    "a function for each element": (
        "const one = (item) => item.id * 2; return args.items.map(one);",
        {"items": listed(fields("id", id=NUMBER))},
        ["items"],
    ),
    "so many functions that hand on, and no more": (
        "function a(x) { return x.p; } function b(x) { return a(x); }"
        " function c(x) { return b(x); } function d(x) { c(x); return x.q; }"
        " function e(x) { return d(x); } e(args);"
        " function f(x) { return e(x); }",
        {"q": {}},
        ["q"],
    ),
    "one function for several": (
        "const f = (x) => x.trim(); f(args.a); f(args.b); f('c');",
        {"a": TEXT, "b": TEXT},
        ["a", "b"],
    ),
    "one function for very many": (
        f"const f = (x) => x.trim(); {' '.join(f'f(args.{name});' for name in 'abcdefghij')}",
        {**dict.fromkeys("abcdefgh", TEXT), "i": {}, "j": {}},
        list("abcdefghij"),
    ),
    "what lies too deep to follow": (
        f"const f = (x) => args.g; f(args.a[0]{'[0]' * 40});",
        {"g": {}, "a": {}},
        ["g", "a"],
    ),
    "a function that calls itself": (
        "const f = (x) => x.next ? f(x.next) : x.id; f(args.list);",
        {"list": fields("id", next={})},
        ["list"],
    ),
    "arguments that nobody knows": (
        "const f = (a, ...b) => a + b; f(...args.l); f(now(), args.m); function now() {}",
        {"l": listed(), "m": {}},
        ["l", "m"],
    ),
}

DEFAULTS: Cases = {
    "in patterns and operators": (
        "const { a = 1, b = now() } = args; const c = args.c ?? 'x'; let d = args.d || null;"
        " function now() {}",
        {"a": {**NUMBER, "default": 1}, "b": {}, "c": {**TEXT, "default": "x"}, "d": {}},
        [],
    ),
    "lists and objects": (
        "const { a = [], b = { k: ['x', 1] } } = args; return [a, b];",
        {
            "a": {**listed(), "default": []},
            "b": {"type": "object", "default": {"k": ["x", 1]}},
        },
        [],
    ),
    "what is not all known": (
        "const { a = [x()], b = { ...x() }, c = [1, , 2], d = '\\ud800', e = [null] } = args;"
        " function x() {} return [b, c, d, e];",
        {name: {} for name in "abcde"},
        [],
    ),
    "of what is inside": (
        "const { a: { b = 1 } = {} } = args; if (b) {}",
        {
            "a": {
                "type": "object",
                "properties": {"b": {**NUMBER, "default": 1}},
                "default": {},
            }
        },
        [],
    ),
    "two that differ": ("return [args.a ?? 1, args.a ?? 2];", {"a": NUMBER}, []),
    "twice the same": ("return [args.a ?? 1, args.a ?? 1];", {"a": {**NUMBER, "default": 1}}, []),
    "of one element": ("const [a, b = 1] = args.pair; return [a, b];", {"pair": {}}, ["pair"]),
    "by assignment": ("args.a ??= 'x'; return args.a;", {"a": {**TEXT, "default": "x"}}, []),
    "of something else": ("const c = f() ?? 1; return c; function f() {}", {}, []),
    "on the other side": ("return [1 ?? a, '' || b];", {"a": {}, "b": {}}, ["a", "b"]),
}

ABSENT: Cases = {
    "what is tested may be left out": (
        "if (a) {} if (b === undefined) {} typeof c; !d; e?.x; f && 1; g ? 1 : 2; 1 && h; 1 ?? i;"
        " while (j) {} do {} while (k); l == null;",
        {**{name: {} for name in "abcdfghijkl"}, "e": fields("x")},
        ["h", "i"],
    ),
    "what only goes where it may be left out": (
        "await mcp.fs.read({ path, limit: args.n });",
        {"path": TEXT, "n": NUMBER},
        ["path"],
    ),
    "unless it is needed elsewhere": (
        "await mcp.fs.read({ path, limit: args.n }); return args.n * 2;",
        {"path": TEXT, "n": NUMBER},
        ["path", "n"],
    ),
    "what goes nowhere known is needed": (
        "return { a: args.a, b };",
        {"a": {}, "b": {}},
        ["a", "b"],
    ),
}

ALL = {
    f"{title}: {name}": case
    for title, cases in {
        "names": NAMES,
        "functions": FUNCTIONS,
        "defaults": DEFAULTS,
        "absent": ABSENT,
    }.items()
    for name, case in cases.items()
}


@pytest.mark.parametrize(("code", "properties", "required"), ALL.values(), ids=ALL)
def test_parameters_are_found_by_their_uses(
    code: str, properties: JsonObject, required: list[str]
) -> None:
    check(code, properties, required)


def test_parameters_are_listed_as_they_are_met() -> None:
    schema = analysed("return [c, args.a, b.z, b.y, c];").parameters_schema
    properties = schema["properties"]
    assert isinstance(properties, dict)
    assert list(properties) == ["c", "a", "b"]
    assert isinstance(properties["b"], dict)
    assert properties["b"]["required"] == ["z", "y"]


def test_a_name_that_is_called_is_no_parameter() -> None:
    assert complaints("helper(1);\nnew Thing();") == [
        "1:1 helper is called but not declared: the caller's arguments are data; "
        "declare a function of that name, or call a tool under mcp.",
        "2:5 Thing is called but not declared: the caller's arguments are data; "
        "declare a function of that name, or call a tool under mcp.",
    ]


def test_parameters_need_a_way_to_reach_the_arguments() -> None:
    (complaint,) = complaints("const args = 1, context = 2; return path;")
    assert complaint == "1:7 args and context are both declared: give one of them another name."
