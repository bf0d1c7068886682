"""Statically known arguments of calls."""

import re

import pytest
from pydantic import JsonValue

from pml_common.contracts.structure import ReferenceArgument, TaskNode
from pml_common.contracts.tool import JsonObject
from services.analyzer.tests.support.programs import analysed, arguments


def literal(value: JsonValue) -> JsonObject:
    return {"type": "literal", "value": value}


_STEPS = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


def parameter(name: str, *default: JsonValue, path: list[JsonValue] | None = None) -> JsonObject:
    """Build a reference to a part of the caller's arguments that can be bound."""
    steps: list[JsonValue] = [int(i) if i else key for i, key in _STEPS.findall(name)]
    told: JsonObject = {"type": "parameter", "parameter_name": name}
    told["path"] = steps if path is None else path
    return {**told, "default": list(default)} if default else told


def loose(name: str) -> JsonObject:
    """Build a reference to a part of the caller's arguments that is known only at run time."""
    return {"type": "parameter", "parameter_name": name}


def reference(expression: str, node_id: str | None = None, **more: JsonValue) -> JsonObject:
    return {"type": "reference", "expression": expression, "node_id": node_id, **more}


def spread(
    expression: str, *keys: str, node_id: str | None = None, **more: JsonValue
) -> JsonObject:
    return reference(expression, node_id, **more, keys=list(keys or ("path", "limit")))


VALUES: dict[str, tuple[str, JsonObject]] = {
    "texts": ("'a\\n\\u{1F600}'", literal("a\n\U0001f600")),
    "templates without parts": ("`a\\`b`", literal("a`b")),
    "numbers": ("0x10", literal(16)),
    "negative numbers": ("-1.5", literal(-1.5)),
    "truth values and null": ("[true, false, null]", literal([True, False, None])),
    "objects": ("{ a: { 'b': 1, ['c']: [2] }, 3: 4 }", literal({"a": {"b": 1, "c": [2]}, "3": 4})),
    "casts": ("('a' as const)!", literal("a")),
    "sums of texts": ("'a' + 'b'", literal("ab")),
    "names of constants": ("KNOWN", literal("known")),
    "names that may be absent": ("MAYBE", reference("MAYBE")),
    "parts of texts": ("'abc'.length", reference("'abc'.length")),
    "negated": ("!true", reference("!true")),
    "not a number": ("-'a'", reference("-'a'")),
    "plus": ("+1", reference("+1")),
    "sums of numbers": ("1 + 1", reference("1 + 1")),
    "sums with something unknown": ("'a' + args", reference("'a' + args")),
    "large integers": ("10n", reference("10n")),
    "more than a number holds": ("1e999", reference("1e999")),
    "half characters": ("'\\ud800'", reference("'\\ud800'")),
    "holes": ("[1, , 2]", reference("[1, , 2]")),
    "a hole at the start": ("[, 1]", reference("[, 1]")),
    "a trailing comma": ("[1, 2,]", literal([1, 2])),
    "expressions": ("new Date( 1,\n 2)", reference("new Date( 1, 2)")),
    "args": ("args.p", parameter("p")),
    "params": ("params.p", parameter("p")),
    "input": ("input?.p", parameter("p")),
    "context": ("context['p']", parameter("p")),
    "inside args": ("args.p.q[0].r", parameter("p.q[0].r")),
    "args by an unknown key": ("args.p[KEY()]", loose("p[]")),
    "args by an unknown name": ("args[KEY()]", reference("args[KEY()]")),
    "args as a whole": ("args", parameter("args", path=[])),
    "free names": ("path", parameter("path")),
    "parts of free names": ("options.path", parameter("options.path")),
    "a free name called input": (
        "{ input }",
        {"type": "object", "fields": {"input": parameter("input")}},
    ),
    "destructured args": ("P", parameter("p")),
    "destructured args with a default": ("Q", parameter("q", 1)),
    "args with a default": ("args.p ?? 'x'", parameter("p", "x")),
    "args with a default, by a name": ("R", parameter("r", 10)),
    "args with a computed default": ("args.p ?? KEY()", reference("args.p ?? KEY()")),
    "args or something falsy": ("args.p && 'x'", reference("args.p && 'x'")),
    "the rest of args": ("REST.z", parameter("z")),
    "function parameters": ("((p) => p)('a')", reference("((p) => p)('a')")),
    "mixed objects": (
        "{ a: 1, b: args.b }",
        {"type": "object", "fields": {"a": literal(1), "b": parameter("b")}},
    ),
    "mixed lists": (
        "[1, [2], path]",
        {"type": "array", "items": [literal(1), literal([2]), parameter("path")]},
    ),
    "lists of unknown length": ("[1, ...args.l, path]", reference("[1, ...args.l, path]")),
}
BEFORE = """\
const KNOWN = "known"; let MAYBE; if (args.x) MAYBE = "a"; const KEY = () => "k";
const { p: P, q: Q = 1, ...REST } = args; const R = args.r || 10;
"""


@pytest.mark.parametrize(("value", "expected"), VALUES.values(), ids=VALUES)
def test_a_value_is_told_for_what_it_is(value: str, expected: JsonObject) -> None:
    analysis = analysed(f"{BEFORE} await mcp.fs.read({{ v: {value} }});")
    assert arguments(analysis) == {"v": expected}


GIVEN: dict[str, tuple[str, JsonObject]] = {
    "nothing": ("", {}),
    "an empty object": ("{}", {}),
    "shorthand": ("{ path }", {"path": parameter("path")}),
    "methods": ("{ m() {}, a: 1 }", {"m": reference("m() {}"), "a": literal(1)}),
    "a getter may change what stands beside it": (
        "{ get g() { return 1 }, a: 1 }",
        {"...{ get g() { return 1 }, a: 1 }": spread("{ get g() { return 1 }, a: 1 }")},
    ),
    "an object by name": ("options", {"...options": parameter("options")}),
    "all arguments": ("args", {"...args": parameter("args", path=[])}),
    "a cast object": ("({ a: 1 } as any)", {"a": literal(1)}),
    "a spread object": ("{ ...{ a: 1 }, b: 2 }", {"a": literal(1), "b": literal(2)}),
    "an unknown spread may overwrite what stands before it": (
        "{ a: 1, ...args.o, b: 2 }",
        {"a": reference("1"), "...args.o": parameter("o"), "b": literal(2)},
    ),
    "so may a computed key": (
        "{ a: 1, [args.k]: 2 }",
        {"a": reference("1"), "...[args.k]": spread("2")},
    ),
    "a later entry wins": ("{ a: 1, a: 2 }", {"a": literal(2)}),
    "undefined is left out": (
        "{ a: undefined, b: void 0, c: { d: undefined } }",
        {"c": literal({})},
    ),
    "undefined takes back what was set": ("{ a: 1, a: undefined }", {}),
    "undefined in a list is null": ("{ a: [undefined, 1] }", {"a": literal([None, 1])}),
    "keys before a spread are left out too": (
        "{ path: 1, ...args.o, path: undefined }",
        {"...args.o": parameter("o")},
    ),
    "what is spread of a result has its path": (
        "{ ...RESULT.o, limit: 1 }",
        {"...RESULT.o": spread("RESULT.o", "path", node_id="n1", path=["o"]), "limit": literal(1)},
    ),
    "a spread may set what a tool takes": (
        "{ path: 'a', ...F(), limit: 1 }",
        {"path": reference("'a'"), "...F()": spread("F()", "path"), "limit": literal(1)},
    ),
    "a default spread": ("{ ...(args.o ?? {}) }", {"...args.o ?? {}": parameter("o", {})}),
    "spreads in objects": (
        "{ a: { ...F() } }",
        {"a": {"type": "object", "fields": {"...F()": reference("F()")}}},
    ),
    "a spread of what a function is given": (
        "{ limit: 1, ...(() => ({}))(), path: 'b' }",
        {
            "limit": reference("1"),
            "...(() => ({}))()": spread("(() => ({}))()", "limit"),
            "path": literal("b"),
        },
    ),
    "a key that looks like a spread": (
        "{ '...args': 1, ...args }",
        {
            '...["...args"]': reference("1", keys=["...args"]),
            "...args": parameter("args", path=[]),
        },
    ),
    "big integers as keys": ("{ 1n: 'a', 0x10n: 'b' }", {"1": literal("a"), "16": literal("b")}),
    "very long ones": (f"{{ {'1' * 150}n: 'a' }}", {f"...{'1' * 150}n": spread("'a'")}),
    "minus zero as a key": ("{ [-0]: -0 }", {"0": literal(0)}),
    "a constant key": ("{ ['a' + 'b']: 1 }", {"ab": literal(1)}),
    "a computed method": ("{ [args.k]() {} }", {"...[args.k]": spread("[args.k]() {}")}),
    "a numeric constant key": ("{ [1]: 1 }", {"1": literal(1)}),
}


@pytest.mark.parametrize(("given", "expected"), GIVEN.values(), ids=GIVEN)
def test_arguments_are_read_by_name(given: str, expected: JsonObject) -> None:
    before = "await mcp.fs.stat({});"
    analysis = analysed(f"const RESULT = {before} const F = () => 1; mcp.fs.read({given});")
    assert arguments(analysis, "n2") == expected


@pytest.mark.parametrize(
    "code",
    [
        "{ let undefined = 5; mcp.fs.read({ a: undefined }); }",
        "const f = (undefined) => { mcp.fs.read({ a: undefined }); }; f(5);",
        "const f = ([undefined]) => { mcp.fs.read({ a: undefined }); }; f([5]);",
    ],
)
def test_undefined_is_a_name_like_others(code: str) -> None:
    assert arguments(analysed(code)) == {"a": reference("undefined")}


def test_numbers_with_a_sign_are_told_as_the_text_that_they_become() -> None:
    told = arguments(analysed("mcp.fs.read({ a: -0, b: `${-0}`, c: 1 / -0, d: -0 + '' });"))
    assert told == {
        "a": literal(0),
        "b": reference("`${-0}`"),
        "c": reference("1 / -0"),
        "d": reference("-0 + ''"),
    }


def test_a_call_by_name_is_given_its_second_argument() -> None:
    assert arguments(analysed("mcp.call('fs:read', { path: 'a' });")) == {"path": literal("a")}


def test_spread_call_arguments_may_be_any() -> None:
    told = arguments(analysed("mcp.fs.read(...args.list, { path: 'a' });"))
    assert told == {"......args.list": spread("...args.list")}


FLOWS: dict[str, tuple[str, str | None]] = {
    "a result": ("const r = await mcp.fs.stat({}); <<r>>", "n1"),
    "a part of a result": ("const r = await mcp.fs.stat({}); <<r.a[0].b>>", "n1"),
    "a destructured part": ("const { a: [, b] } = await mcp.fs.stat({}); <<b>>", "n1"),
    "a part with a default": ("const { a = 1 } = await mcp.fs.stat({}); <<a>>", "n1"),
    "assigned in a branch": ("let r; if (args.x) { r = await mcp.fs.stat({}); } <<r>>", "n1"),
    "through a name": ("const r = await mcp.fs.stat({}); const s = r; <<s>>", "n1"),
    "computed from": ("const r = await mcp.fs.stat({}); const s = r.a.trim(); <<`${s}!`>>", "n1"),
    "directly": ("<<(await mcp.fs.stat({})).a>>", "n2"),
    "then": ("mcp.fs.stat({}).then((r) => <<r.a>>)", "n1"),
    "an item in a loop": ("const l = await mcp.fs.list({}); for (const f of l) <<f>>", "n1"),
    "an item in a callback": ("const l = await mcp.fs.list({}); l.items.map((f) => <<f.x>>)", "n1"),
    "collected": ("const l = []; l.push(await mcp.fs.stat({})); <<l.join()>>", "n1"),
    "kept in a member": ("const o = {}; o.r = await mcp.fs.stat({}); <<o.r>>", "n1"),
    "of two calls": ("const a = await mcp.fs.stat({}), b = await mcp.fs.list({}); <<a + b>>", None),
    "of none": ("const a = Math.random(); <<a>>", None),
    "of a parameter": ("const f = (a) => <<a>>; items.push(f)", None),
    "a name that refers to itself": ("let c = null; c = next(c); <<c>>; function next(x) {}", None),
    "what another call is given is not passed on": (
        "const a = await mcp.fs.stat({}); const b = await mcp.fs.list({ path: a }); <<b>>",
        "n2",
    ),
}


@pytest.mark.parametrize(("code", "node_id"), FLOWS.values(), ids=FLOWS)
def test_a_reference_names_the_call_that_produced_it(code: str, node_id: str | None) -> None:
    used = code.replace("<<", "mcp.json.parse({ json: ").replace(">>", " })")
    analysis = analysed(used)
    (use,) = [n for n in analysis.structure.nodes if isinstance(n, TaskNode) and "json" in n.tool]
    (value,) = use.arguments.values()
    assert isinstance(value, ReferenceArgument)
    assert value.node_id == node_id
