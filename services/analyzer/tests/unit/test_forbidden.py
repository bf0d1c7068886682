"""What no program may use, with reason and place; and what only looks like it."""

import pytest

from services.analyzer.tests.programs import analysed, complaints, rejected

FORBIDDEN = {
    "import": ("import a from 'b';", "1:1 import is not allowed"),
    "import =": ("import a = require('b');", "1:1 import is not allowed"),
    "export": ("const a = 1;\nexport { a };", "2:1 export is not allowed"),
    "dynamic import": ("await import('x');", "1:7 import() is not allowed"),
    "import.meta": ("return import.meta.url;", "1:8 import.meta is not allowed"),
    "eval": ("eval('1');", "1:1 eval is not allowed: code made from text"),
    "indirect eval": ("(0, eval)('1');", "1:5 eval is not allowed"),
    "escaped eval": ("\\u0065val('1');", "1:1 eval is not allowed"),
    "Function": ("new Function('1');", "1:5 Function is not allowed"),
    "an alias of Function": ("const F = Function;", "1:11 Function is not allowed"),
    "shorthand": ("return { eval };", "1:10 eval is not allowed"),
    "Deno": ("Deno.exit(0);", "1:1 Deno is not allowed"),
    "process": ("return process.env;", "1:8 process is not allowed"),
    "Worker": ("new Worker('x');", "1:5 Worker is not allowed"),
    "globalThis": ("globalThis['ev' + 'al'];", "1:1 globalThis is not allowed"),
    "self": ("self.postMessage(1);", "1:1 self is not allowed"),
    "fetch": ("fetch('x');", "1:1 fetch is not allowed: programs reach the world through tools"),
    "reserved names": ("const __pml_x = 1;", "1:7 Names that begin with __pml are reserved"),
    "reserved free names": ("__pml.at;", "1:1 Names that begin with __pml are reserved"),
    "reserved labels": ("__pml: for (;;) {}", "1:1 Names that begin with __pml are reserved"),
    "__proto__": ("return [].__proto__;", "1:11 __proto__ is not allowed"),
    "__proto__ in brackets": ("return []['__proto__'];", "1:11 __proto__ is not allowed"),
    "__proto__ in a literal": ("return { __proto__: null };", "1:10 __proto__ is not allowed"),
    "__proto__ in a quoted key": ("return { '__proto__': 1 };", "1:10 __proto__ is not allowed"),
    "constructor": ("(() => {}).constructor('1')();", "1:12 constructor is not allowed"),
    "a composed key": ("[]['constr' + 'uctor'];", "1:4 constructor is not allowed"),
    "a constant key": ("const k = 'constructor'; [][k];", "1:29 constructor is not allowed"),
    "a destructured key": ("const { constructor: C } = [];", "1:22 constructor is not allowed"),
    "constructor as a whole": ("const c = [].constructor;", "1:14 constructor is not allowed"),
    "setPrototypeOf": ("Object.setPrototypeOf({}, null);", "1:8 setPrototypeOf is not allowed"),
    "changed prototypes": ("Array.prototype.x = 1;", "1:7 prototype cannot be changed"),
    "deep changes": ("Array.prototype['x'].y = 1;", "1:7 prototype cannot be changed"),
    "arguments": ("return arguments[0];", "1:8 arguments is not there"),
    "arguments in an arrow": ("const f = () => arguments;", "1:17 arguments is not there"),
    "with": ("with (args) {}", "1:1 with is not allowed"),
    "a #! line": ("#!/bin/sh\nreturn 1;", "1:1 A #! line is not allowed"),
    "HTML comments": ("<!-- a\nreturn 1;", "1:1 HTML comments are not allowed"),
    "namespaces": ("namespace A { a; }", "1:1 Namespaces are not supported"),
    "modules": ("module A { a; }", "1:1 Namespaces are not supported"),
    "decorators": ("@a class A {}", "1:1 Decorators are not supported"),
    "assigned but not declared": (
        "x = 1;",
        "1:1 x is assigned but never declared",
    ),
    "mcp assigned": ("mcp = 1;", "1:1 mcp cannot be assigned: give yours another name"),
    "args assigned by a pattern": ("[args] = [1];", "1:2 args cannot be assigned"),
    "declared twice": ("let a = 1; const a = 2;", "1:18 a is already declared in this block"),
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
    "a class with a constructor": "class A { constructor() { super.toString(); } } new A();",
    "the name of a class": "return [args.a.constructor.name, args.a['constructor']['name']];",
    "methods of prototypes": "return Array.prototype.slice.call([1]);",
    "arguments in a function": "function f() { return () => arguments.length; } return f();",
    "arguments in a method": "return { m() { return arguments.length; } }.m();",
    "declared again as var": "var a = 1; var a = 2; function f() {} return f;",
    "the same name in another block": "let a = 1; { let a = 2; return a; }",
    "own members": "const o = {}; o.x = 1; o['y'] = 2; return o;",
    "own args": "const args = { a: 1 }; return args.a;",
    "own args beside parameters": "const args = 1; return path + args;",
}


@pytest.mark.parametrize("code", ALLOWED.values(), ids=ALLOWED)
def test_what_only_looks_forbidden_is_allowed(code: str) -> None:
    assert analysed(code).decision.verdict == "allow"


def test_every_problem_is_told_in_source_order_up_to_a_number() -> None:
    told = complaints("eval(1);\n" * 30)
    assert len(told) == 20
    assert told[1].startswith("2:1 ")


def test_the_line_is_shown_with_the_problem() -> None:
    (told,) = rejected("const a = 1;\n  eval(a);\n").diagnostics
    assert told.source_line == "  eval(a);"
    assert told.severity == "error"
