"""The values of a parameter."""

import pytest

from pml_common.contracts.tool import JsonObject
from services.analyzer.tests.support.parameters import NUMBER, TEXT, TRUTH
from services.analyzer.tests.support.programs import analysed

VALUES: dict[str, tuple[str, JsonObject]] = {
    "compared": (
        "return args.m === 'a' || args.m === 'b';",
        {**TEXT, "examples": ["a", "b"]},
    ),
    "a switch with something for all others": (
        "switch (args.m) { case 'a': break; default: return 2; }",
        {**TEXT, "examples": ["a"]},
    ),
    "a switch with nothing for all others": (
        "switch (args.m) { case 'a': break; case 'b': }",
        {**TEXT, "examples": ["a", "b"]},
    ),
    "a switch that refuses all others": (
        "switch (args.m) { case 'a': case 'b': f(); break; default: f(); throw 1; }"
        " function f() {}",
        {**TEXT, "enum": ["a", "b"]},
    ),
    "a label that the run computes": (
        "switch (args.m) { case 'a': break; case f(): break; default: throw 1; } function f() {}",
        {**TEXT, "examples": ["a"]},
    ),
    "ifs that refuse all others": (
        "if (args.m === 1) {} else if (2 === args.m || args.m == 3) {} else { throw 1; }",
        {**NUMBER, "enum": [1, 2, 3]},
    ),
    "ifs with something else in them": (
        "if (args.m === 'a') {} else if (args.n) {} else throw 1;",
        {**TEXT, "examples": ["a"]},
    ),
    "ifs that end with nothing": (
        "if (args.m === 'a') {} else if (args.m === 'b') {}",
        {**TEXT, "examples": ["a", "b"]},
    ),
    "ifs that do not refuse": (
        "if (args.m === 'a') {} else {}",
        {**TEXT, "examples": ["a"]},
    ),
    "refused at once": (
        "if (args.m !== 'a' && args.m !== 'b') throw 1;",
        {**TEXT, "enum": ["a", "b"]},
    ),
    "refused unless absent": (
        "if (args.m !== undefined && !(args.m === 'a')) throw 1;",
        {**TEXT, "enum": ["a"]},
    ),
    "refused unless empty": (
        "if (args.m && args.m !== 'a') throw 1;",
        {**TEXT, "examples": ["a"]},
    ),
    "refused by a list": (
        "if (!['a', 'b', 'a'].includes(args.m)) { throw 1; }",
        {**TEXT, "enum": ["a", "b"]},
    ),
    "refused by a set": (
        "const KNOWN = new Set(['a', 'b']); if (!KNOWN.has(args.m)) throw 1;",
        {**TEXT, "enum": ["a", "b"]},
    ),
    "a list that grows": (
        "const known = ['a']; known.push(args.x); if (!known.includes(args.m)) throw 1;",
        {},
    ),
    "a list by another way": (
        "const { known } = { known: ['a'] }; if (!known.includes(args.m)) throw 1;",
        {},
    ),
    "a list of something": ("if (![args.x].includes(args.m)) throw 1;", {}),
    "another question": (
        "if (!['a'].some(f)) throw 1; if (!f(args.m)) throw 1; function f() {}",
        {},
    ),
    "a list of two questions": (
        "if (!['a'].includes(args.m, 1)) throw 1;",
        {**TEXT, "examples": ["a"]},
    ),
    "about two": (
        "if (args.m !== 'a' && args.n !== 'b') throw 1;",
        {**TEXT, "examples": ["a"]},
    ),
    "of two unknown values": ("if (args.m !== f() && f() !== f()) throw 1; function f() {}", {}),
    "refused in another order": (
        "if (args.m < 1 || args.m !== 2) throw 1;",
        {**NUMBER, "examples": [2]},
    ),
    "with a default": (
        "const m = args.m ?? 'a'; if (m !== 'a' && m !== 'b') throw 1;",
        {**TEXT, "enum": ["a", "b"], "default": "a"},
    ),
    "with a default that is refused": (
        "const m = args.m ?? 'c'; if (m !== 'a') throw 1;",
        {**TEXT, "examples": ["a"], "default": "c"},
    ),
    "after a return": (
        "if (args.stop) return 1; if (args.m !== 'a') throw 1;",
        {**TEXT, "examples": ["a"]},
    ),
    "before a return": (
        "const f = () => { return 1; }; if (args.m !== 'a') throw 1; return 1;",
        {**TEXT, "enum": ["a"]},
    ),
    "returning instead of refusing": (
        "if (args.m !== 'a') { if (f) return 1; throw 1; } function f() {}",
        {**TEXT, "examples": ["a"]},
    ),
    "where not every run comes": (
        "if (args.x) { if (args.m !== 'a') throw 1; }",
        {**TEXT, "examples": ["a"]},
    ),
    "true or false": ("return args.m === true;", TRUTH),
}


@pytest.mark.parametrize(("code", "expected"), VALUES.values(), ids=VALUES)
def test_values_are_all_there_are_only_if_every_other_fails(
    code: str, expected: JsonObject
) -> None:
    properties = analysed(code).parameters_schema["properties"]
    assert isinstance(properties, dict)
    assert properties["m"] == expected
