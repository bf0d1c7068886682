"""Syntax that parses and no engine loads, and syntax that loads: test_deno.py runs the engine
itself."""

import pytest

from services.analyzer.tests.support.programs import analysed, complaints

EARLY = {
    "await in an arrow": (
        "args.a.map(\n  (x) => { await mcp.fs.read({ path: x }); });",
        "2:12 await is in a function that is not async: write async before it, on line 2.",
    ),
    "await in a function": ("function f() { await 1; }", "1:16 await is in a function"),
    "await in a method": ("class A { m() { await 1; } }", "1:17 await is in a function"),
    "await in an inner function": (
        "async function f() { return () => await 1; }",
        "1:35 await is in a function",
    ),
    "for await": ("function f() { for await (const a of b); }", "1:16 await is in a function"),
    "await in a default": ("function f(a = await 1) {}", "1:16 await is in a function"),
    "yield": ("yield 1;", "1:1 yield is outside a generator"),
    "yield in an arrow": ("function* g() { return () => { yield 1; }; }", "1:32 yield is"),
    "break": ("break;", "1:1 break is outside a loop or switch"),
    "break in an if": ("for (;;) {}\nif (args.a) { break; }", "2:15 break is outside"),
    "break in a callback": ("for (;;) { (() => { break; })(); }", "1:21 break is outside"),
    "break in a static block": ("for (;;) { class A { static { break; } } }", "1:31 break is"),
    "break after a switch": ("switch (1) {} break;", "1:15 break is outside a loop"),
    "continue": ("continue;", "1:1 continue is outside a loop"),
    "continue in a switch": ("switch (1) { case 1: continue; }", "1:22 continue is outside"),
    "a label that is not there": ("a: { break b; }", "1:6 No statement round this"),
    "a label of what is over": ("a: {} for (;;) { break a; }", "1:18 No statement round this"),
    "a label outside the function": ("a: for (;;) { (() => { break a; })(); }", "1:24 No state"),
    "continue with a block": ("a: { for (;;) { continue a; } }", "1:17 No statement round this"),
    "super": ("super.x;", "1:1 super is outside a method"),
    "super in a function": ("function f() { super.x; }", "1:16 super is outside a method"),
    "new.target": ("return new.target;", "1:8 new.target is outside a function"),
    "new.target in an arrow": ("() => new.target;", "1:7 new.target is outside a function"),
    "a constant without a value": ("const a;", "1:7 a needs a value"),
    "a pattern without a value": ("let { a };", "1:5 { a } needs a value"),
    "an old octal number": ("return 017;", "1:8 A number cannot begin with 0"),
    "a number with a 0 before it": ("return 08;", "1:8 A number cannot begin with 0"),
    "an octal escape": ("return 'a\\1';", "1:10 Octal escapes are not allowed"),
    "an octal escape after 0": ("return '\\01';", "1:9 Octal escapes are not allowed"),
    "an octal escape in a template": ("return `a\\1`;", "1:10 Octal escapes are not allowed"),
    "a name deleted": ("let a = 1; delete a;", "1:12 delete takes a part of an object"),
    "an object as a statement": ("{ a: 1, b: 2 }", "1:1 What begins with { is a block here"),
    "a member of an object as a statement": ("{ m() {} }.m();", "1:1 What begins with { is a"),
    "an object in a block": (
        "for (;;) { a: { b: 1, c: 2 } }",
        "1:10 What begins with { is a block",
    ),
    "a text as a key": ("{ 'a': 1 }", "1:1 What begins with { is a block here"),
    "a type in parentheses": ("(args: any);", "1:6 A type is not allowed in parentheses"),
    "a text over two lines": ("const a = 'b\n  ';", "1:11 A text in quotes ends on its line"),
    "an escape that is no character": ("return '\\u{110000}';", "1:9 \\u is not followed by"),
    "an octal escape and more": ("return '\\n\\u0001\\x01\\7';", "1:21 Octal escapes are not"),
    "?? beside ||": ("return args.a ?? args.b || 1;", "1:18 ?? beside && or || needs parentheses"),
    "&& beside ??": ("return args.a && args.b ?? 1;", "1:8 ?? beside && or || needs parentheses"),
    "a sign before **": ("return -2 ** 2;", "1:8 A sign before ** needs parentheses"),
    "const after if": ("if (args.a) const b = 1;", "1:13 A declaration is not allowed here alone"),
    "let after else": ("if (args.a) {} else let b = 1;", "1:21 A declaration is not allowed here"),
    "a class after while": ("while (args.a) class A {}", "1:16 A declaration is not allowed here"),
    "a function after a label": ("a: function f() {}", "1:4 A declaration is not allowed here"),
    "flags": ("return /a/xyz;", "1:8 No regular expression has the flags xyz"),
    "a flag twice": ("return /a/gg;", "1:8 No regular expression has the flags gg"),
    "two kinds of Unicode": ("return /a/uv;", "1:8 No regular expression has the flags uv"),
    "a private name of no class": ("return args.a.#b;", "1:15 #b is declared in no class"),
    "a value assigned": ("(1 + args.a) = 1;", "1:1 This cannot be assigned"),
    "a value counted": ("--\n0;", "2:1 This cannot be assigned"),
    "?. assigned": ("args?.a.b = 1;", "1:1 What ?. leads to cannot be written"),
    "?. counted": ("args?.a++;", "1:1 What ?. leads to cannot be written"),
    "?. made": ("const o = {}; new o?.a();", "1:19 new cannot make what ?. may leave out"),
    "try alone": ("try { f(); }\nfunction f() {}", "1:1 try needs catch or finally"),
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
    "objects in parentheses": "({ a: 1, b: 2 }); return { c: [{}] };",
    "a text over two lines": "return 'b\\\n  c' + 'd\\\r\ne' + `f\ng`;",
    "last characters": "return '\\u{10ffff}\\u{0000041}\\u0041\\x41\\y';",
    "mixed in parentheses": "return (args.a ?? args.b) || args.c && args.d || ((1 ?? 2));",
    "powers": "return [(-2) ** 2, 2 ** -2, 2 ** 3 ** 2];",
    "declarations in braces": "if (args.a) { const b = 1; } else { let c; } if (1) var d = 1;",
    "declarations in cases": "switch (1) { case 1: const a = 1; default: class B {} }",
    "blocks and signs": "{} +1; { f(); } -1; function f() {}",
    "labels in blocks": "for (;;) { a: { f(); } break; } function f() {}",
    "empty blocks": "{} a: {} for (;;) { b: {} break; }",
    "all that is written": "let a; (a) = 1; (a as any) = 2; a!.b = 3; for (a of []); a++;",
    "patterns in asynchronous rounds": "for await (let [a] of []) a; for await(let {b} of []) b;",
    "less than a negative": "return [args.a < -1, args.b < - 1n, args.c<-args.d, [1 < -0, 2]];",
    "a choice of fractions": "return args.a?.5:args.b ?.25e1 : args.c ?? .5;",
    "any escapes in tags": "return String.raw`C:\\users\\xyz${1}\\u{zz} \\u0041 \\\\u`;",
    "regular expressions": "return [/a/, /[/]/g, /a\\/b/dgimsy, /a/v, /a/u];",
    "private names": "class A { #b = 1; #c() { return #b in this; } d() { this.#b = this.#c(); } }",
    "chains read": "return [args?.a.b, args.o?.[0]?.k, new (args?.a ? Map : Set)()];",
    "chains beside writes": "const o = {}; o[args?.a] = 1; o.b = args?.c; delete o?.a;",
    "members deleted": "const o = { a: 1 }; delete o.a; delete o['b']; return -o.a;",
}


@pytest.mark.parametrize("code", LOADED.values(), ids=LOADED)
def test_what_an_engine_loads_is_taken(code: str) -> None:
    assert analysed(code)
