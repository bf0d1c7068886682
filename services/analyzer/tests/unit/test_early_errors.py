"""What parses and no engine loads, and what loads: the engine itself is asked in test_deno.py."""

import pytest

from services.analyzer.tests.programs import analysed, complaints

EARLY = {
    "await in an arrow": (
        "args.a.map(\n  (x) => { await mcp.fs.read({ path: x }); });",
        "2:12 await stands in a function that is not async: write async before it, on line 2.",
    ),
    "await in a function": ("function f() { await 1; }", "1:16 await stands in a function"),
    "await in a method": ("class A { m() { await 1; } }", "1:17 await stands in a function"),
    "await in an inner function": (
        "async function f() { return () => await 1; }",
        "1:35 await stands in a function",
    ),
    "for await": ("function f() { for await (const a of b); }", "1:16 await stands in a function"),
    "await in a default": ("function f(a = await 1) {}", "1:16 await stands in a function"),
    "yield": ("yield 1;", "1:1 yield stands outside a generator"),
    "yield in an arrow": ("function* g() { return () => { yield 1; }; }", "1:32 yield stands"),
    "break": ("break;", "1:1 break stands outside a loop or switch"),
    "break in an if": ("for (;;) {}\nif (args.a) { break; }", "2:15 break stands outside"),
    "break in a callback": ("for (;;) { (() => { break; })(); }", "1:21 break stands outside"),
    "break in a static block": ("for (;;) class A { static { break; } }", "1:29 break stands"),
    "break after a switch": ("switch (1) {} break;", "1:15 break stands outside a loop"),
    "continue": ("continue;", "1:1 continue stands outside a loop"),
    "continue in a switch": ("switch (1) { case 1: continue; }", "1:22 continue stands outside"),
    "a label that is not there": ("a: { break b; }", "1:6 No statement round this"),
    "a label of what is over": ("a: {} for (;;) { break a; }", "1:18 No statement round this"),
    "a label outside the function": ("a: for (;;) { (() => { break a; })(); }", "1:24 No state"),
    "continue with a block": ("a: { for (;;) { continue a; } }", "1:17 No statement round this"),
    "super": ("super.x;", "1:1 super stands outside a method"),
    "super in a function": ("function f() { super.x; }", "1:16 super stands outside a method"),
    "new.target": ("return new.target;", "1:8 new.target stands outside a function"),
    "new.target in an arrow": ("() => new.target;", "1:7 new.target stands outside a function"),
    "a constant without a value": ("const a;", "1:7 a needs a value"),
    "a pattern without a value": ("let { a };", "1:5 { a } needs a value"),
    "an old octal number": ("return 017;", "1:8 A number cannot begin with 0"),
    "a number with a 0 before it": ("return 08;", "1:8 A number cannot begin with 0"),
    "an octal escape": ("return 'a\\1';", "1:10 Octal escapes are not allowed"),
    "an octal escape after 0": ("return '\\01';", "1:9 Octal escapes are not allowed"),
    "an octal escape in a template": ("return `a\\1`;", "1:10 Octal escapes are not allowed"),
    "a name deleted": ("let a = 1; delete a;", "1:12 delete takes a part of an object"),
    "a tag after ?.": ("const o = args; o?.a`b`;", "1:21 A template cannot follow ?."),
}


@pytest.mark.parametrize(("code", "complaint"), EARLY.values(), ids=EARLY)
def test_what_no_engine_loads_is_refused(code: str, complaint: str) -> None:
    told = complaints(code)
    assert told[0].startswith(complaint), told


LOADED = {
    "await on top": "for await (const a of args.a) { await a; }",
    "await in async functions": "const o = { async m() { await 1; } }; (async () => await 1)();",
    "await in a name": "const o = { [await 1]() {} }; class A { [await 1] = 2; } return o;",
    "for of in a function": "function f() { for (const a of [1]) a; } return f();",
    "yield": "function* g() { yield 1; } const o = { *g() { yield 1; } }; return [g(), o.g()];",
    "yield and await": "async function* g() { yield await 1; } return [g()];",
    "break": "for (;;) { if (args.a) { break; } else { continue; } }",
    "break in a switch": "for (;;) { switch (1) { case 1: break; default: continue; } }",
    "labels": "a: b: for (;;) { c: { for (;;) { if (args.a) continue a; break c; } } break b; }",
    "the same label twice": "a: for (;;) { break a; } a: { break a; }",
    "super": "class A { m = super.a; static { super.a; } n() { return () => super.n(); } }",
    "super in an object": "return { m() { return super.toString(); } };",
    "new.target": "function f() { return () => new.target; } class A { a = new.target; } f();",
    "declarations": "let a; var b; const c = 1; for (const d of []); for (let e = 0; e < 1; e++);",
    "ambient declarations": "declare const a: number; return 1;",
    "numbers": "return [0, 0.5, 0e1, 0x01, 0b01, 0o01, 0n];",
    "escapes": "return '\\0 \\x01 \\u0001 \\\\1 \\n' + `\\\\1 \\0`;",
    "tags": "return String.raw`\\1`;",
    "members deleted": "const o = { a: 1 }; delete o.a; delete o['b']; return -o.a;",
}


@pytest.mark.parametrize("code", LOADED.values(), ids=LOADED)
def test_what_an_engine_loads_is_taken(code: str) -> None:
    assert analysed(code)
