"""Programs of one shape become one program with parameters."""

import pytest

from pml_analysis.capability_reading import code_hash_of
from pml_analysis.variants import LiftedVariants, NotLiftable, lift_variants

LIFTED: dict[str, tuple[tuple[str, ...], str]] = {
    "a property, and a comparison": (
        (
            "const r = await mcp.fs.read({ path: 'a', limit: 3 }); return r.kind === 'x';",
            "const r = await mcp.fs.read({ path: 'b', limit: 3 }); return r.kind === 'y';",
        ),
        "const r = await mcp.fs.read({ path: args.path ?? 'a', limit: 3 });"
        " return r.kind === (args.kind ?? 'x');",
    ),
    "a list that may change is copied, one that is passed is not": (
        (
            "const xs = ['a']; xs.push('b'); mcp.fs.read({ paths: ['c'] });",
            "const xs = []; xs.push('b'); mcp.fs.read({ paths: ['d'] });",
        ),
        "const xs = [...(args.xs ?? ['a'])]; xs.push('b');"
        " mcp.fs.read({ paths: args.paths ?? ['c'] });",
    ),
    "names of variables, parameters, fields and defaults": (
        (
            "let a = 1; a = 2; const f = ({ b = 3 }, c = 4) => b; class D { e = 5; } mcp.x.y();",
            "let a = 6; a = 7; const f = ({ b = 8 }, c = 9) => b; class D { e = 0; } mcp.x.y();",
        ),
        "let a = args.a ?? 1; a = (args.a_2 ?? 2);"
        " const f = ({ b = (args.b ?? 3) }, c = (args.c ?? 4)) => b;"
        " class D { e = (args.e ?? 5); } mcp.x.y();",
    ),
    "names of parameters of local functions, of other functions, and none": (
        (
            "const f = (path, n) => mcp.a.b({ path, n }); f('a', 1); const g = p => mcp.a.b({ p });"
            " g('d'); const h = () => 0; h('x'); return 'e'.split(',', 1 + 2);",
            "const f = (path, n) => mcp.a.b({ path, n }); f('b', 3); const g = p => mcp.a.b({ p });"
            " g('h'); const h = () => 0; h('y'); return 'i'.split(';', 4 + 5);",
        ),
        "const f = (path, n) => mcp.a.b({ path, n }); f(args.path ?? 'a', args.n ?? 1);"
        " const g = p => mcp.a.b({ p }); g(args.p ?? 'd'); const h = () => 0; h(args.h ?? 'x');"
        " return (args.value ?? 'e')"
        ".split(args.split ?? ',', (args.value_2 ?? 1) + (args.value_3 ?? 2));",
    ),
    "cases, and what is compared by index": (
        (
            "mcp.a.b(); switch (x.kind) { case 'a': return y[0] > 1; default: return y[z] > 2; }",
            "mcp.a.b(); switch (x.kind) { case 'b': return y[0] > 3; default: return y[z] > 4; }",
        ),
        "mcp.a.b(); switch (x.kind) { case (args.kind ?? 'a'): return y[0] > (args.value ?? 1);"
        " default: return y[z] > (args.value_2 ?? 2); }",
    ),
    "the same values are one parameter": (
        (
            "mcp.a.b({ path: 'x', url: 'x', n: 1 }); mcp.a.c({ n: 1 });",
            "mcp.a.b({ path: 'y', url: 'z', n: 2 }); mcp.a.c({ n: 2 });",
        ),
        "mcp.a.b({ path: args.path ?? 'x', url: args.url ?? 'x', n: args.n ?? 1 });"
        " mcp.a.c({ n: args.n ?? 1 });",
    ),
    "names that are taken, and keys that are no names": (
        (
            "mcp.a.b({ path, 'content-type': 'x', [`k`]: 1 }); mcp.a.b({ path: 'y', '': 3 });",
            "mcp.a.b({ path, 'content-type': 'u', [`k`]: 2 }); mcp.a.b({ path: 'v', '': 4 });",
        ),
        "mcp.a.b({ path, 'content-type': args[\"content-type\"] ?? 'x', [`k`]: args.value ?? 1 });"
        " mcp.a.b({ path: args.path_2 ?? 'y', '': args.value_2 ?? 3 });",
    ),
    "conditions": (
        (
            "mcp.a.b(); if ('a') return; while (([])) break;",
            "mcp.a.b(); if (0) return; while (([1])) break;",
        ),
        "mcp.a.b(); if (args.value ?? 'a') return; while (([...(args.value_2 ?? [])])) break;",
    ),
    "casts and parentheses stay inside": (
        (
            "const s = ('a' as const) + 'c'; mcp.a.b({ s });",
            "const s = ('b' as const) + 'c'; mcp.a.b({ s });",
        ),
        "const s = (args.value ?? 'a' as const) + 'c'; mcp.a.b({ s });",
    ),
}

REFUSED: dict[str, tuple[tuple[str, ...], str]] = {
    "one program": (("mcp.a.b();",), "it takes two programs"),
    "no program": (("mcp.a.b();", "("), "program 2 does not parse"),
    "another shape": (("mcp.a.b({ a: 1 });", "mcp.a.c({ a: 1 });"), "program 2 differs"),
    "all arguments at once": (
        ("mcp.a.b({ ...args, a: 1 });", "mcp.a.b({ ...args, a: 2 });"),
        "uses all of its arguments at once",
    ),
}


def lift(*sources: str) -> LiftedVariants:
    """Lift, and check that each program's arguments make it again."""
    found = lift_variants(sources)
    for code, passed in zip(sources, found.arguments, strict=True):
        again = lift_variants([code, *sources])
        assert again.parameters == found.parameters
        assert again.arguments[0] == passed
    return found


@pytest.mark.parametrize(("sources", "expected"), LIFTED.values(), ids=LIFTED)
def test_literals_that_vary_become_parameters_of_the_first(
    sources: tuple[str, ...], expected: str
) -> None:
    assert lift(*sources).code == expected


@pytest.mark.parametrize(("sources", "why"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_one_program_is_refused(sources: tuple[str, ...], why: str) -> None:
    with pytest.raises(NotLiftable, match=why):
        lift_variants(sources)


def test_a_literal_that_chooses_what_is_called_is_refused() -> None:
    one, other = "mcp.call('fs:' + 'read', {});", "mcp.call('fs' + ':read', {});"
    with pytest.raises(NotLiftable, match="chooses what is called"):
        lift_variants([one, other])


def test_equal_programs_have_nothing_to_lift() -> None:
    code = "mcp.fs.read({ ...args, path: 'a' });"
    assert lift(code, f"// again\n{code}").code == code


def test_the_schema_accepts_the_values_of_all_programs() -> None:
    found = lift(
        "mcp.a.b({ path: 'a', n: 1, l: ['x'], m: [1], e: [], given });",
        "mcp.a.b({ path: 'b', n: '2', l: ['y', 'z'], m: ['k'], e: [false], given });",
    )
    assert found.parameters_schema == {
        "type": "object",
        "properties": {
            "path": {"type": "string", "default": "a"},
            "n": {"default": 1},
            "l": {"type": "array", "items": {"type": "string"}, "default": ["x"]},
            "m": {"type": "array", "default": [1]},
            "e": {"type": "array", "items": {"type": "boolean"}, "default": []},
            "given": {},
        },
        "required": ["given"],
    }
    assert found.arguments[1] == {
        "path": "b",
        "n": "2",
        "l": ["y", "z"],
        "m": ["k"],
        "e": [False],
    }


def test_names_do_not_depend_on_layout_or_on_the_other_programs() -> None:
    one = "const r = await mcp.fs.read({ path: 'a' }); return r;"
    other = 'const x=await mcp.fs.read({path:"b"})\nreturn x'
    third = "const y = await mcp.fs.read({ path: 'c' }); return y;"
    assert lift(one, other).parameters == lift(other, third, one).parameters == ["path"]
    assert code_hash_of(lift(one, other).code) == code_hash_of(lift(one, third).code)
