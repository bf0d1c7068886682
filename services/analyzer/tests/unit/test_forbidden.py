"""Forbidden constructs, with reason and place; and harmless ones that look like them."""

import pytest

from services.analyzer.tests.support.programs import analysed, complaints, rejected

LOADING = {
    "import": ("import a from 'b';", "1:1 import is not allowed"),
    "import =": ("import a = require('b');", "1:1 import is not allowed"),
    "export": ("const a = 1;\nexport { a };", "2:1 export is not allowed"),
    "export a function": ("export async function main() {}", "1:1 export is not allowed"),
    "dynamic import": ("await import('x');", "1:7 import() is not allowed"),
    "import.meta": ("return import.meta.url;", "1:8 import.meta is not allowed"),
    "require": ("const fs = require('fs');", "1:12 require is not allowed"),
    "importScripts": ("importScripts('x');", "1:1 importScripts is not allowed"),
}
CODE_FROM_TEXT = {
    "eval": ("eval('1');", "1:1 eval is not allowed: code made from text"),
    "indirect eval": ("(0, eval)('1');", "1:5 eval is not allowed"),
    "escaped eval": ("\\u0065val('1');", "1:1 eval is not allowed"),
    "eval escaped by code point": ("ev\\u{61}l('1');", "1:1 eval is not allowed"),
    "Function": ("new Function('1');", "1:5 Function is not allowed"),
    "Function as a call": ("Function('1')();", "1:1 Function is not allowed"),
    "an alias of Function": ("const F = Function;", "1:11 Function is not allowed"),
    "a subclass of Function": ("class F extends Function {}", "1:17 Function is not allowed"),
    "shorthand": ("return { eval };", "1:10 eval is not allowed"),
    "ShadowRealm": ("new ShadowRealm();", "1:5 ShadowRealm is not allowed"),
    "a timer of text": ("setTimeout('eval(1)', 1);", "1:12 setTimeout takes a function"),
    "an interval of a template": ("setInterval(`${a}`);", "1:13 setInterval takes a function"),
    "a timer of a name for text": ("const t = 'x'; setTimeout(t);", "1:27 setTimeout takes"),
    "a timer by another name": ("const s = setTimeout; s('x');", "1:25 setTimeout takes"),
}
RUNTIME = {
    "Deno": ("Deno.exit(0);", "1:1 Deno is not allowed"),
    "process": ("return process.env;", "1:8 process is not allowed"),
    "Worker": ("new Worker('x');", "1:5 Worker is not allowed"),
    "SharedWorker": ("new SharedWorker('x');", "1:5 SharedWorker is not allowed"),
    "fetch": ("fetch('x');", "1:1 fetch is not allowed: programs reach the world through tools"),
    "WebSocket": ("new WebSocket('x');", "1:5 WebSocket is not allowed"),
    "WebAssembly": ("WebAssembly.compile(a);", "1:1 WebAssembly is not allowed"),
    "SharedArrayBuffer": ("new SharedArrayBuffer(1);", "1:5 SharedArrayBuffer is not allowed"),
    "Atomics": ("Atomics.wait(a, 0, 0);", "1:1 Atomics is not allowed"),
    "BroadcastChannel": ("new BroadcastChannel('x');", "1:5 BroadcastChannel is not allowed"),
    "WeakRef": ("new WeakRef({});", "1:5 WeakRef is not allowed"),
    "localStorage": ("localStorage.a = 1;", "1:1 localStorage is not allowed"),
    "Buffer": ("Buffer.from('a');", "1:1 Buffer is not allowed: it is not there; use TextEncoder"),
}
GLOBAL_OBJECT = {
    "a composed key": (
        "globalThis['ev' + 'al'];",
        "1:1 globalThis is not allowed: dynamic global access, here to eval; the global object",
    ),
    "a key of the run's": (
        "return globalThis[name];",
        "1:8 globalThis is not allowed: dynamic global access, here to a name known only at",
    ),
    "under a cast": ("(globalThis as any)['x'];", "1:2 globalThis is not allowed: dynamic global"),
    "optional": ("globalThis?.['x'];", "1:1 globalThis is not allowed: dynamic global access"),
    "a fixed key": ("globalThis.fetch('x');", "1:1 globalThis is not allowed: the global object"),
    "as a key": ("const o = {}; o[globalThis];", "1:17 globalThis is not allowed: the global"),
    "an alias": ("const g = globalThis; g.x;", "1:11 globalThis is not allowed: the global object"),
    "destructured": ("const { Deno } = globalThis;", "1:18 globalThis is not allowed"),
    "self": ("self.postMessage(1);", "1:1 self is not allowed"),
    "window": ("window['x'];", "1:1 window is not allowed: dynamic global access, here to x"),
    "global": ("global.x = 1;", "1:1 global is not allowed"),
}
NAMES = {
    "reserved names": ("const __pml_x = 1;", "1:7 Names that begin with __pml are reserved"),
    "reserved free names": ("__pml.at;", "1:1 Names that begin with __pml are reserved"),
    "reserved labels": ("__pml: for (;;) {}", "1:1 Names that begin with __pml are reserved"),
    "arguments": ("return arguments[0];", "1:8 arguments is not there"),
    "arguments in an arrow": ("const f = () => arguments;", "1:17 arguments is not there"),
    "assigned but not declared": ("x = 1;", "1:1 x is assigned but never declared"),
    "mcp assigned": ("mcp = 1;", "1:1 mcp cannot be assigned: give yours another name"),
    "args assigned by a pattern": ("[args] = [1];", "1:2 args cannot be assigned"),
    "declared twice": ("let a = 1; const a = 2;", "1:18 a is already declared in this block"),
    "data that is called": ("helper(1);", "1:1 helper is called but not declared"),
    "data that is constructed": ("new Helper();", "1:5 Helper is called but not declared"),
    "data that is inherited": ("class A extends B {}", "1:17 B is called but not declared"),
}
SYNTAX = {
    "with": ("with (args) {}", "1:1 with is not allowed"),
    "a #! line": ("#!/bin/sh\nreturn 1;", "1:1 A #! line is not allowed"),
    "an HTML comment": ("<!-- a\nreturn 1;", "1:1 HTML comments are not allowed"),
    "the end of an HTML comment": ("f;\n--> a\nreturn 1;", "2:1 HTML comments are not allowed"),
    "a namespace": ("namespace A { a; }", "1:1 Namespaces are not supported"),
    "a module": ("module A { a; }", "1:1 Namespaces are not supported"),
    "a decorator": ("@a class A {}", "1:1 Decorators are not supported"),
    "a decorated method": ("class A { @a m() {} }", "1:11 Decorators are not supported"),
    "using": ("using a = args.a;", "1:1 using is not supported"),
    "await using": ("await using a = args.a;", "1:7 using is not supported"),
}
MISUSED_TOOLS = {
    "a tag": ("await mcp.fs.read`a`;", "1:18 A tool takes one object, not a template"),
    "a tag by another name": ("const r = mcp.fs.read; r`a`;", "1:25 A tool takes one object"),
    "mcp.call as a tag": ("mcp.call`fs:read`;", "1:9 A tool takes one object"),
}
FORBIDDEN = {
    f"{group}: {name}": case
    for group, cases in {
        "loading": LOADING,
        "code from text": CODE_FROM_TEXT,
        "runtime": RUNTIME,
        "global object": GLOBAL_OBJECT,
        "names": NAMES,
        "syntax": SYNTAX,
        "tools": MISUSED_TOOLS,
    }.items()
    for name, case in cases.items()
}


@pytest.mark.parametrize(("code", "complaint"), FORBIDDEN.values(), ids=FORBIDDEN)
def test_a_forbidden_construct_is_refused_with_its_reason_and_place(
    code: str, complaint: str
) -> None:
    assert any(told.startswith(complaint) for told in complaints(code)), complaints(code)


ALLOWED = {
    "texts": "const url = 'import x'; return `eval(1) __proto__ ${url}`;",
    "comments": "// import x from 'y'; eval()\nreturn 1; /* Deno */",
    "properties": "const o = { eval: 1, process: 2 }; return o.eval + o.process + o.self;",
    "locals": "const f = (process, self) => process(self); return f((x) => x, 1);",
    "own fetch": "const fetch = (url) => mcp.fs.read({ path: url }); return await fetch('a');",
    "types": "let f: Function = () => 1; return f();",
    "asking for a global": "return [typeof process, typeof window, typeof globalThis];",
    "a class with a constructor": "class A { constructor() { super.toString(); } } new A();",
    "arguments in a function": "function f() { return () => arguments.length; } return f();",
    "arguments in a method": "return { m() { return arguments.length; } }.m();",
    "declared again as var": "var a = 1; var a = 2; function f() {} return f;",
    "the same name in another block": "let a = 1; { let a = 2; return a; }",
    "own members": "const o = {}; o.x = 1; o['y'] = 2; return o;",
    "own args": "const args = { a: 1 }; return args.a;",
    "own args beside parameters": "const args = 1; return path + args;",
    "timers of functions": "const f = () => 1; setTimeout(f, 1); setTimeout(() => 1);",
    "a timer of nothing": "setTimeout();",
    "a timer of one's own": "const o = { set: (t) => t }; o.set('setTimeout');",
    "tags": "const t = (s) => s; return String.raw`a` + t`${await mcp.fs.read({ path: 'a' })}`;",
    "generators": "function* g() { yield mcp.fs.read({ path: 'a' }); } return [...g()];",
    "labelled loops": "a: for (const x of args.xs) { for (;;) { continue a; } }",
    "comma expressions": "return (await mcp.fs.stat({ path: 'a' }), 1);",
    "getters with calls": "const o = { get a() { return mcp.fs.read({ path: 'a' }); } }; o.a;",
    "optional catch bindings": "try { return 1; } catch { return 2; }",
    "private members": "class A { #x = 1; static has(o) { return #x in o; } y = this.#x; }",
    "regular expressions": "return /import('x')[/]/gu.test(args.a);",
    "numbers": "return [1_000, 0x1f, 0b1, 0o7, .5, 1e3, 10n];",
    "casts": "return <any>args.a as unknown as string;",
    "enums": "enum A { B = 1 } return A.B;",
    "debugger": "debugger; return 1;",
    "top-level return": "if (args.a) return 1;\nreturn 2;",
}


@pytest.mark.parametrize("code", ALLOWED.values(), ids=ALLOWED)
def test_what_only_looks_forbidden_is_allowed(code: str) -> None:
    assert analysed(code).decision.verdict == "allow"


def test_asking_whether_there_is_a_global_makes_no_parameter() -> None:
    assert analysed("return typeof process;").parameters_schema["properties"] == {}


def test_every_problem_is_told_in_source_order_up_to_a_number() -> None:
    told = complaints("eval(1);\n" * 30)
    assert len(told) == 20
    assert told[1].startswith("2:1 ")


def test_one_place_has_one_problem() -> None:
    assert len(complaints("eval = 1;")) == 1


def test_the_line_is_shown_with_the_problem() -> None:
    (told,) = rejected("const a = 1;\n  eval(a);\n").diagnostics
    assert told.source_line == "  eval(a);"
    assert told.severity == "error"


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        (0, 300, "eval(1);" + " " * 192),
        (1_000, 300, " " * 1_000 + "eval(1);" + " " * 93),
        (3_000, 300, "…" + " " * 99 + "eval(1);" + " " * 93),
    ],
)
def test_of_a_long_line_the_place_is_shown(before: int, after: int, shown: str) -> None:
    (told,) = rejected(" " * before + "eval(1);" + " " * after).diagnostics
    assert told.column == before + 1
    assert told.source_line == shown
