"""Minimised programs that once failed, found by fuzzing and in real code."""

import pytest

from services.analyzer.tests.support.fuzzing import check
from services.analyzer.tests.support.programs import analysed, complaints, flow, nodes

OWN_NAMES = {
    "called where it is written, by its name nowhere": (
        "const a = (function f() { mcp.fs.read({}); })();",
        "n1 fs:read",
        "",
    ),
    "called where it is written, and by itself": (
        "(function f(a) { mcp.fs.read({}); if (a) f(a - 1); })(3); mcp.fs.stat({});",
        "l1 recursion f, n1 fs:read, d1 a, n2 fs:stat",
        "l1>>n1 n1>d1 d1>l1:true d1>n2:false",
    ),
    "run by a method, and by itself": (
        "args.a.map(function f(a) { mcp.fs.read({}); if (a) f(a - 1); });",
        "l1 map args.a, l2 recursion f, n1 fs:read, d1 a",
        "l1>>l2 l2>>n1 n1>d1 d1>l1:false d1>l2:true",
    ),
    "handed to nobody known": (
        "args.a(function f() { mcp.fs.read({}); });",
        "n1 fs:read",
        "",
    ),
}


@pytest.mark.parametrize(("code", "drawn", "ways"), OWN_NAMES.values(), ids=OWN_NAMES)
def test_a_function_expression_with_a_name_of_its_own(code: str, drawn: str, ways: str) -> None:
    analysis = analysed(code)
    assert nodes(analysis) == drawn
    assert sorted(flow(analysis).split()) == sorted(ways.split())
    check(code)


NO_JAVASCRIPT = {
    "new of what may be absent": ("new args.a?.b();", "1:5 new cannot make what ?. may leave out"),
    "new of a call that may not be made": (
        "new mcp.fs.read?.({})({});",
        "1:5 new cannot make what ?. may leave out",
    ),
    "writing to what may be absent": ("args.a?.b = 1;", "1:1 What ?. leads to cannot be written"),
    "adding to what may be absent": ("args.a?.b.c += 1;", "1:1 What ?. leads to cannot be written"),
    "counting what may be absent": ("args.a?.b++;", "1:1 What ?. leads to cannot be written"),
    "looping over what may be absent": (
        "for (args.a?.b of [1]) {}",
        "1:6 What ?. leads to cannot be written",
    ),
    "a name that is half a character": ("return \\u{D800};", "1:8 \\u{D800} is no name"),
    "a member that is a space": ("return args.a\\u{20}b;", "1:13 a\\u{20}b is no name"),
    "a private name that is a digit": ("class A { #\\u0031 = 1; }", "1:11 #\\u0031 is no name"),
    "a tag at the end of an optional chain": (
        "const a = args.a; a?.b.c!`x`;",
        "1:26 A template cannot follow ?. in a chain",
    ),
    "a tag on a tool that may be absent": (
        "mcp?.fs.read`x`;",
        "1:13 A template cannot follow ?. in a chain",
    ),
}


@pytest.mark.parametrize(("code", "complaint"), NO_JAVASCRIPT.values(), ids=NO_JAVASCRIPT)
def test_what_only_the_grammar_takes_for_javascript_is_refused(code: str, complaint: str) -> None:
    (told,) = complaints(code)
    assert told.startswith(complaint)


@pytest.mark.parametrize(
    "code",
    [
        "const \\u0061b = 1; return ab;",
        "class A { #\\u0061 = 1; $\\u200c = 2; }",
        "return (args.a?.b)`x`;",
        "return args.a`x`?.b;",
        "return new (class { a = args.b?.c; })();",
        "return delete args.a?.b;",
        "args[args.a?.b] = 1;",
        "return `${args.a?.b}\\u{20}`;",
    ],
)
def test_what_only_looks_like_it_is_not(code: str) -> None:
    analysed(code)
