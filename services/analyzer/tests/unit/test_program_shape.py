"""The hash by which two programs differ by literals alone."""

import pytest

from pml_analysis.capability_reading import shape_of
from pml_analysis.running.program_shape import ProgramShape
from services.analyzer.tests.unit.test_normal_form import EQUAL


def shape(code: str) -> ProgramShape:
    found = shape_of(code)
    assert found is not None
    return found


READ = "const r = await mcp.fs.read({ path: 'a', limit: 3 });\nreturn r.content;"

SAME = {
    "a text": (READ, READ.replace("'a'", "'b.json'")),
    "a number": (READ, READ.replace("3", "-4.5")),
    "the kind of a literal": (READ, READ.replace("3", "true")),
    "a list of another length": ("mcp.fs.read({ l: ['a'] });", "mcp.fs.read({ l: [1, -2] });"),
    "a list in a list": ("mcp.fs.read({ l: [['a'], x] });", "mcp.fs.read({ l: [[], x] });"),
    "a template without parts": (READ, READ.replace("'a'", "`b`")),
    "parentheses and casts": (READ, READ.replace("'a'", "('b' as const)")),
    "a comparison": ("mcp.a.b(); return x === 'a';", "mcp.a.b(); return x === 'b';"),
    "layout, names and literals at once": (
        READ,
        "const found=await mcp.fs.read({'path':\"c\",limit:0}) // read\nreturn found.content",
    ),
}

DIFFERENT = {
    "the tool": (READ, READ.replace("fs.read", "fs.stat")),
    "the tool, by name": ("mcp.call('fs:read', {});", "mcp.call('fs:stat', {});"),
    "the tool, by a constant": (
        "const t = 'read'; mcp.fs[t]({});",
        "const t = 'stat'; mcp.fs[t]({});",
    ),
    "the capability": ("capabilities.fs_a({});", "capabilities.fs_b({});"),
    "the part of a result": (READ, READ.replace("r.content", "r.size")),
    "the part of a result, by text": ("mcp.a.b(); x['a'];", "mcp.a.b(); x['b'];"),
    "an index": ("mcp.a.b(); return x[0];", "mcp.a.b(); return x[1];"),
    "a key": ("mcp.a.b({ a: 1 });", "mcp.a.b({ b: 1 });"),
    "a computed key": ("mcp.a.b({ ['a']: 1 });", "mcp.a.b({ ['b']: 1 });"),
    "null": ("mcp.a.b({ a: 1 });", "mcp.a.b({ a: null });"),
    "a regular expression": ("mcp.a.b({ a: /x/ });", "mcp.a.b({ a: /y/ });"),
    "text around parts": ("mcp.a.b({ a: `x${y}` });", "mcp.a.b({ a: `z${y}` });"),
    "a tagged text": ("mcp.a.b(f`x`);", "mcp.a.b(f`y`);"),
    "a member of an enumeration": ("enum A { X = 1 } mcp.a.b();", "enum A { X = 2 } mcp.a.b();"),
    "a directive": ("'use strict'; mcp.a.b();", "'use sloppy'; mcp.a.b();"),
    "a text that begins a statement": ("'a'.at(0); mcp.a.b();", "'b'.at(0); mcp.a.b();"),
    "a big integer": ("mcp.a.b({ a: 1n });", "mcp.a.b({ a: 2n });"),
    "one condition more": (READ, READ.replace("return", "if (r) return")),
    "what may choose the tool": (
        "const t = x ? 'fs:read' : y; mcp.call(t, { path: 'a' });",
        "const t = x ? 'fs:write' : y; mcp.call(t, { path: 'a' });",
    ),
}


@pytest.mark.parametrize(("one", "other"), SAME.values(), ids=SAME)
def test_programs_that_differ_by_literals_alone_have_one_shape(one: str, other: str) -> None:
    assert shape(one).shape_hash == shape(other).shape_hash
    assert len(shape(one).literals) == len(shape(other).literals)


@pytest.mark.parametrize(("one", "other"), EQUAL.values(), ids=EQUAL)
def test_what_changes_no_hash_of_the_code_changes_no_shape(one: str, other: str) -> None:
    assert shape(one).shape_hash == shape(other).shape_hash


@pytest.mark.parametrize(("one", "other"), DIFFERENT.values(), ids=DIFFERENT)
def test_programs_that_differ_otherwise_have_different_shapes(one: str, other: str) -> None:
    assert shape(one).shape_hash != shape(other).shape_hash


def test_a_program_without_a_call_is_known() -> None:
    assert not shape("return [1, 2].map((x) => x + 1);").makes_calls
    assert shape(READ).makes_calls
    assert shape("return capabilities.fs_read({});").makes_calls
    assert shape("return mcp[args.server].read({});").makes_calls


@pytest.mark.parametrize("code", ["(", "[" * 5000 + "]" * 5000])
def test_a_text_that_is_no_program_has_no_shape(code: str) -> None:
    assert shape_of(code) is None
