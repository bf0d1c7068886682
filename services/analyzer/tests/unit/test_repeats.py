"""Calls that a run certainly makes at most once."""

import re

import pytest

from services.analyzer.tests.support.library import calling
from services.analyzer.tests.support.programs import TaskNode, analysed

ONCE = {
    "at the top": "await C;",
    "in a branch": "if (args.x) { await C; } else { args.y && await C; }",
    "in try": "try { await C; } catch { await C; } finally { await C; }",
    "in a switch": "switch (args.x) { case 1: await C; default: await C; }",
    "in a block with a label": "a: { if (args.x) break a; await C; }",
    "what a loop runs over": "for (const f of (await C).files) {}",
    "what a loop begins with": "for (let i = await C; i < 3; i++) {}",
    "side by side": "await Promise.all([C, C]);",
    "a function on the spot": "await (async () => { await C; })();",
    "a function on the spot, cast": "await ((async () => { await C; }) as any)();",
    "one invocation": "const f = async () => { await C; }; await f();",
    "two invocations": "const f = async () => { await C; }; await f(); await f();",
    "a function in a function": "const f = () => { const g = () => C; g(); }; f();",
    "one called by name": "function f() { return C; } f(); f?.();",
}
REPEATED = {
    "in a loop": "for (const x of args.l) await C;",
    "in a loop's condition": "while (await C) {}",
    "in a loop's test": "for (let i = 0; await C; await C) {}",
    "in do": "do { await C; } while (await C);",
    "in a callback": "args.l.map(() => C);",
    "in a callback of who knows what": "args.x(() => C);",
    "side by side, mapped": "await Promise.all(args.l.map(() => C));",
    "side by side, in parentheses": "await Promise.all((args.l.map(() => C)));",
    "in then": "Promise.resolve().then(() => C);",
    "in a generator": "function* g() { C; } g();",
    "in a method": "const o = { m() { C; } }; o.m();",
    "in a getter": "const o = { get m() { return C; } }; o.m;",
    "in a class": "class A { x = C; static { C; } m() { C; } }",
    "in a function that is handed on": "const f = () => C; args.x(f);",
    "in a callback by name": "const f = () => C; args.l.map(f);",
    "in a function that calls itself": "function f() { C; f(); } f();",
    "in functions that call each other": "function f() { C; g(); } function g() { C; f(); } f();",
    "below one that calls itself": "function g() { C; } function f() { g(); f(); } f();",
    "in a function invoked in a loop": "const f = () => C; for (const x of args.l) f();",
    "in one that knows its own name": "(function f() { C; args.x(f); })();",
    "in a constructor": "new (function () { C; })();",
    "bound": "const f = () => C; f.call(null);",
}
_CALL = "mcp.fs.read({ path: 'a' })"


@pytest.mark.parametrize("code", ONCE.values(), ids=ONCE)
def test_a_call_outside_of_all_that_repeats_is_made_once(code: str) -> None:
    assert set(_repeats(code)) == {False}


@pytest.mark.parametrize("code", REPEATED.values(), ids=REPEATED)
def test_in_doubt_a_call_may_be_repeated(code: str) -> None:
    assert set(_repeats(code)) == {True}


def test_only_the_known_invocation_of_a_function_that_is_handed_on_too_is_made_once() -> None:
    assert sorted(_repeats("const f = () => C; f(); args.x(f);")) == [False, True]


def test_calls_of_capabilities_say_so_too() -> None:
    analysis = calling("await capabilities.math_double({ x: 1 });")
    assert [node.repeats for node in analysis.structure.nodes if node.type == "capability"] == [
        False
    ]


def _repeats(code: str) -> list[bool]:
    nodes = analysed(re.sub(r"\bC\b", _CALL, code)).structure.nodes
    return [node.repeats for node in nodes if isinstance(node, TaskNode)]
