"""The type of a parameter, and its parts."""

import pytest

from pml_common.contracts.parameters import without_certain
from pml_common.contracts.tool import JsonObject
from services.analyzer.tests.support.parameters import (
    NUMBER,
    TEXT,
    TRUTH,
    Cases,
    check,
    fields,
    listed,
)
from services.analyzer.tests.support.programs import analysed

TYPES: Cases = {
    "by comparison": (
        "return [a === 'x', 'x' !== b, c > 1, d == true, e === 'x', e === 1, f < g, h < null];",
        {
            "a": {**TEXT, "examples": ["x"]},
            "b": {**TEXT, "examples": ["x"]},
            "c": NUMBER,
            "d": TRUTH,
            "e": {},
            "f": {},
            "g": {},
            "h": {},
        },
        ["a", "b", "c", "d", "e", "f", "g", "h"],
    ),
    "by arithmetic": (
        "let n = 0; n -= args.a; args.b++; return [-args.c, ~args.d, 2 ** args.e, args.f % 2,"
        " Math.max(1, args.g), args.h + 1, args.i + now, +args.j]; function now() {}",
        {**dict.fromkeys("abcdefgh", NUMBER), "i": {}, "j": {}},
        list("abcdefghij"),
    ),
    "by methods": (
        "return [a.trim(), b.map((x) => x), c.toFixed(2), d.slice(1), e.ask(), (f)?.join()];",
        {"a": TEXT, "b": listed(), "c": NUMBER, "d": {}, "e": {}, "f": listed()},
        list("abcde"),
    ),
    "by templates and sums of texts": (
        "return [`${a}`, 'x' + b, `${c}` + (c - 1), tag`${d}`, '' + true + e]; function tag() {}",
        {"a": TEXT, "b": TEXT, "c": NUMBER, "d": {}, "e": {}},
        list("abcde"),
    ),
    "by loops and spreads": (
        "for (const x of a) {} for (const k in b) {} f(...c); [...d]; ({ ...e }); let o = {};"
        " for (o[f] of []) {} for (args.w of []) {} function f() {}",
        {
            "a": listed(),
            "b": {"type": "object"},
            "c": listed(),
            "d": listed(),
            "e": {"type": "object"},
            "w": {},
        },
        list("abcdew"),
    ),
    "by JavaScript's own functions": (
        "JSON.parse(a); Object.keys(b); new Set(c); encodeURIComponent(d); new URL(e, f);"
        " isNaN(g); String(h); console.log(i); new Date; x.y()(j);",
        {
            "a": TEXT,
            "b": {"type": "object"},
            "c": listed(),
            "d": TEXT,
            "e": TEXT,
            "f": {},
            "g": NUMBER,
            "h": {},
            "i": {},
            "x": {},
            "j": {},
        },
        [*"abcdefghi", "x", "j"],
    ),
    "not by functions of the same name": (
        "const JSON = { parse() {} }; JSON.parse(args.a);",
        {"a": {}},
        ["a"],
    ),
    "by operators": (
        "return ['k' in args.a, args.b in {}, args.c instanceof Date];",
        {"a": {"type": "object"}, "b": TEXT, "c": {}},
        ["a", "b", "c"],
    ),
    "by what the author says": (
        "const a: string = args.a; let b: number | undefined = args.b;"
        " const c = args.c as string[], d = (args.d as Array<number>).length, e = args.e as Thing,"
        " f: string | number = args.f, g = args.g as const, h = <boolean>args.h,"
        " i = args.i satisfies readonly boolean[], j = args.j as Item[];",
        {
            "a": TEXT,
            "b": NUMBER,
            "c": listed(TEXT),
            "d": listed(NUMBER),
            "e": {},
            "f": {},
            "g": {},
            "h": {},
            "i": listed(TRUTH),
            "j": listed(),
        },
        list("acdefghij"),
    ),
    "contradictions": (
        "return [a.trim(), a.toFixed(), b - 1, b.id];",
        {"a": {}, "b": {}},
        ["a", "b"],
    ),
    "guesses that differ": ("for (const x of a) {} for (const k in a) {}", {"a": {}}, ["a"]),
    "a demand goes before a guess": ("for (const c of a) {} a.trim();", {"a": TEXT}, ["a"]),
    "what the program asks for": (
        "if (typeof a === 'string') a.trim(); Array.isArray(b) ? b.map(f) : b; function f() {}",
        {"a": {}, "b": {}},
        ["b"],
    ),
    "whether it is there is another question": (
        "if (typeof a !== 'undefined') a.trim();",
        {"a": TEXT},
        [],
    ),
}

PARTS: Cases = {
    "objects": (
        "return [a.b === 'x', a.c?.d, args['e']['f']];",
        {
            "a": fields("b", b={**TEXT, "examples": ["x"]}, c=fields("d")),
            "e": fields("f"),
        },
        ["a", "e"],
    ),
    "elements by index": ("return args.items[0].id;", {"items": listed(fields("id"))}, ["items"]),
    "elements in a loop": (
        "for (const item of args.items) { item.size * 2; }",
        {"items": listed(fields("size", size=NUMBER))},
        ["items"],
    ),
    "elements in a counting loop": (
        "for (let i = 0; i < rows.length; i++) { rows[i].size * 2; }",
        {"rows": listed(fields("size", size=NUMBER))},
        ["rows"],
    ),
    "elements in a callback": (
        "return items.filter(({ on }) => on).map((i) => i);",
        {"items": listed(fields("on"))},
        ["items"],
    ),
    "the place of a text is no element": (
        "return [a[0], b[0].trim(), c.length];",
        {"a": {}, "b": {}, "c": {}},
        ["a", "b", "c"],
    ),
    "a length is no field": (
        "const n = rows.length; for (let i = 0; i < n; i++) rows[i].size * 2;",
        {"rows": listed(fields("size", size=NUMBER))},
        ["rows"],
    ),
    "values by key are no elements": (
        "return Object.keys(sizes).map((key) => sizes[key].total);",
        {"sizes": {"type": "object"}},
        ["sizes"],
    ),
}

ALL = {
    f"{title}: {name}": case
    for title, cases in {
        "types": TYPES,
        "parts": PARTS,
    }.items()
    for name, case in cases.items()
}


@pytest.mark.parametrize(("code", "properties", "required"), ALL.values(), ids=ALL)
def test_types_are_told_by_uses(code: str, properties: JsonObject, required: list[str]) -> None:
    check(code, properties, required)


def test_parts_are_told_as_deep_as_anyone_looks() -> None:
    schema = without_certain(analysed(f"return a{'.b' * 40};").parameters_schema)
    assert str(schema).count("properties") == 30
