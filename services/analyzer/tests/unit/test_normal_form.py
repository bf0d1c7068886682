"""The hash by which two texts are one capability."""

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.analyzer.tests.support.programs import SOURCES_EXAMPLE, analysed

EQUAL = {
    "layout": ("const a=1;return a", "const a = 1;\n\n  return a;"),
    "comments": ("return 1;", "// one\nreturn /* two */ 1; /* three */"),
    "line ends": ("const a = 1;\nreturn a;", "const a = 1;\r\nreturn a;\r\n"),
    "quotes": ("return 'a\"b';", 'return "a\\"b";'),
    "escapes": ("return 'é';", "return '\\u00e9';"),
    "semicolons": ("const a = 1; return a;", "const a = 1\nreturn a"),
    "empty statements": ("return 1;", ";;return 1;;"),
    "local names": ("const a = 1; return a;", "const b = 1; return b;"),
    "names of functions and parameters": (
        "function f(a, { b, c: [d] }, ...e) { return a + b + d + e; } return f;",
        "function g(b, { b: a, c: [e] }, ...d) { return b + a + e + d; } return g;",
    ),
    "names with defaults": (
        "const { a = 1, b: { c } = {} } = args; return a + c;",
        "const { a: x = 1, b: { c: y } = {} } = args; return x + y;",
    ),
    "names of classes and loops": (
        "class A { m() { return A; } } for (const x of args.l) { x.y; } try {} catch (e) { e; }",
        "class B { m() { return B; } } for (const z of args.l) { z.y; } try {} catch (f) { f; }",
    ),
    "shorthand": ("const a = 1; return { a };", "const b = 1; return { a: b };"),
    "quoted keys": ("return { a: 1, 'b': 2 };", "return { 'a': 1, b: 2 };"),
    "trailing commas": (
        "f([1, 2,], { a: 1, },); function f(a, b,) {}",
        "f([1, 2], { a: 1 }); function f(a, b) {}",
    ),
    "arrow parentheses": ("return args.l.map(x => x);", "return args.l.map((y) => y);"),
    "redundant parentheses": ("return (1) + (a);", "return 1 + a;"),
    "numbers": ("return [16, 1000, 0.5];", "return [0x10, 1_000, .5];"),
    "types": (
        "const a: number = args.a as any; const f = (x?: string): void => {}; return f(a!);",
        "const a = args.a; const f = (x) => {}; return f(a);",
    ),
    "declared types": (
        "type T = 1; interface I { a: T } declare const q: I; return 1;",
        "return 1;",
    ),
    "escaped names": ("const ab = 1; return ab;", "const \\u0061b = 1; return a\\u0062;"),
}


@pytest.mark.parametrize(("one", "other"), EQUAL.values(), ids=EQUAL)
def test_what_changes_no_behaviour_changes_no_hash(one: str, other: str) -> None:
    assert analysed(one).code_hash == analysed(other).code_hash


DIFFERENT = {
    "literals": ("return 1;", "return 2;"),
    "texts": ("return 'a';", "return 'b';"),
    "a text and a number": ("return '1';", "return 1;"),
    "a text and a name": ("const a = 1; return a;", "const a = 1; return 'a';"),
    "tools": ("mcp.fs.read({});", "mcp.fs.stat({});"),
    "parameters": ("return a;", "return b;"),
    "keys": ("return { a: 1 };", "return { b: 1 };"),
    "key and computed key": ("return { a: 1 };", "return { [a]: 1 };"),
    "operators": ("return a + b;", "return a - b;"),
    "prefix and postfix": ("let a = 1; return a++;", "let a = 1; return ++a;"),
    "order": ("return a - b;", "return b - a;"),
    "grouping": ("return (a + b) * c;", "return a + b * c;"),
    "branches": ("if (a) { mcp.fs.read({}); }", "if (a) {} else { mcp.fs.read({}); }"),
    "awaiting": ("await mcp.fs.read({});", "mcp.fs.read({});"),
    "which local": ("const a = 1, b = 2; return a;", "const a = 1, b = 2; return b;"),
    "which scope": (
        "const a = 1; { const a = 2; return a; }",
        "const a = 1; { const b = 2; return a; }",
    ),
    "const and let": ("const a = 1; return a;", "let a = 1; return a;"),
    "async": ("return async () => 1;", "return () => 1;"),
    "generators": ("return function* () {};", "return function () {};"),
    "static": ("class A { static a() {} }", "class A { a() {} }"),
    "getters": ("return { get a() { return 1; } };", "return { a() { return 1; } };"),
    "optional chains": ("return a?.b;", "return a.b;"),
    "where an optional chain ends": ("return (a?.b).c;", "return a?.b.c;"),
    "holes": ("return [1, , 2];", "return [1, 2];"),
    "a hole at the end": ("return [1, ,];", "return [1];"),
    "for parts": ("for (; a; ) { break; }", "for (; ; a) { break; }"),
    "of and in": ("for (const a of b) {}", "for (const a in b) {}"),
    "for await": ("for await (const a of b) {}", "for (const a of b) {}"),
    "templates": ("return `a${b}`;", "return `a ${b}`;"),
    "regular expressions": ("return /a/g;", "return /a/i;"),
    "labels": ("a: for (;;) { break a; }", "a: for (;;) { break; }"),
    "private names": ("class A { #a = 1; }", "class A { #b = 1; }"),
    "default or none": ("const { a = 1 } = args; return a;", "const { a } = args; return a;"),
    "rest": ("const f = (...a) => a; return f;", "const f = (a) => a; return f;"),
    "large integers": ("return 1n;", "return 1;"),
    "a number in a text": ("return 'a 1';", "return 'a';"),
    "yield*": ("return function* () { yield* a; };", "return function* () { yield a; };"),
    "new.target": ("function F() { return new.target; } return F;", "function F() {} return F;"),
}


@pytest.mark.parametrize(("one", "other"), DIFFERENT.values(), ids=DIFFERENT)
def test_what_changes_behaviour_changes_the_hash(one: str, other: str) -> None:
    assert analysed(one).code_hash != analysed(other).code_hash


def test_the_hash_is_sha_256_and_stays() -> None:
    digest = analysed(SOURCES_EXAMPLE).code_hash
    assert re.fullmatch("[0-9a-f]{64}", digest)
    assert digest == ("34bfc9d7398174fdf25eab20c4ff21cc8dae3e5a971bd850de14b89947a40923")


NAMES = st.text(string.ascii_letters + "_$", min_size=3, max_size=8).map(lambda name: f"_{name}")


@given(st.lists(NAMES, min_size=3, max_size=3, unique=True))
def test_any_renaming_of_locals_keeps_the_hash(names: list[str]) -> None:
    template = (
        "const {0} = await mcp.fs.stat({{ path }}); if ({0}.exists) {{ const {1} = args.q;"
        " return [{0}, {1}].map(({2}) => ({{ {2}, one: {1} }})); }}"
    )
    renamed = template.replace("{{ {2},", "{{ item: {2},")
    assert analysed(renamed.format(*names)).code_hash == analysed(renamed.format(*"abc")).code_hash


SPACE = st.sampled_from([" ", "\n", "\t", "/* c */", "// c\n", "\r\n"])
CODE = "const a = await mcp . fs . read ( { path : 'x' } ) ; if ( a ) { a . b ( 1 ) ; }"
TOKENS = re.findall(r"\S+", CODE)


@given(st.lists(SPACE, min_size=len(TOKENS), max_size=len(TOKENS)))
def test_any_layout_keeps_the_hash(spaces: list[str]) -> None:
    code = "".join(token + space for token, space in zip(TOKENS, spaces, strict=True))
    assert analysed(code).code_hash == analysed(" ".join(TOKENS)).code_hash
