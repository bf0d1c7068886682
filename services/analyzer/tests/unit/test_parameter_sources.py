"""Arguments that certainly are a part of the caller's, and their defaults."""

import pytest
from pydantic import JsonValue

from pml_common.contracts.structure import ParameterArgument, ReferenceArgument, TaskNode
from services.analyzer.tests.support.programs import analysed

PARAMETERS: dict[str, tuple[str, list[JsonValue], list[JsonValue]]] = {
    "a free name": ("<<path>>", ["path"], []),
    "a part": ("<<args.a[0].b>>", ["a", 0, "b"], []),
    "an element": ("for (const p of args.paths) <<p>>", ["paths", None], []),
    "an element in a callback": ("args.l.map((x) => <<x.a>>)", ["l", None, "a"], []),
    "all": ("<<args>>", [], []),
    "??": ("<<args.a ?? 3>>", ["a"], [3]),
    "?? null": ("<<args.a ?? null>>", ["a"], [None]),
    "||": ("<<args.a || 'x'>>", ["a"], ["x"]),
    "?? a list": ("const l = args.a ?? [1, { b: 2 }]; <<l>>", ["a"], [[1, {"b": 2}]]),
    "a default in a pattern": ("const { a = 3 } = args; <<a>>", ["a"], [3]),
    "a default of a function": ("const f = (x = 3) => { <<x>> }; f(args.a)", ["a"], [3]),
    "not a default of a function": ("const f = (x = 3) => { <<x>> }; f(args)", [], [3]),
    "??=": ("args.a ??= 3; <<args.a>>", ["a"], [3]),
}


@pytest.mark.parametrize(("code", "path", "default"), PARAMETERS.values(), ids=PARAMETERS)
def test_a_part_of_the_callers_arguments_has_its_path_and_default(
    code: str, path: list[JsonValue], default: list[JsonValue]
) -> None:
    value = _used(code)
    assert isinstance(value, ParameterArgument)
    assert (value.path, value.default) == (tuple(path), tuple(default))


LOOSE = {
    "an unknown default": "<<args.a ?? Date.now()>>",
    "two defaults": "<<args.a ?? 1 ?? 2>>",
    "two defaults, by a name": "const { a = 1 } = args; <<a ?? 2>>",
    "a default for what another is a part of": "const o = args.o ?? { a: 1 }; <<o.a>>",
    "set with another default": "args.a ??= 1; <<args.a ?? 2>>",
    "set twice": "args.a ??= 1; args.a ??= 2; <<args.a>>",
    "set inside": "args.a.b ??= 1; <<args.a>>",
    "set to something unknown": "args.a ??= Date.now(); <<args.a>>",
    "a default for an element": "args.l.map((x = 1) => <<x.y>>)",
    "a choice": "<<args.c ? args.a : null>>",
    "a changed one": "args.a.push(1); <<args.a>>",
    "an unknown index": "<<args.a[args.i]>>",
    "a length": "<<args.a.length>>",
}


@pytest.mark.parametrize("code", LOOSE.values(), ids=LOOSE)
def test_what_may_be_another_value_has_no_path(code: str) -> None:
    value = _used(code)
    assert isinstance(value, ParameterArgument | ReferenceArgument)
    assert value.path is None


def _used(code: str) -> object:
    """Return the argument of the call in `<<…>>`."""
    text = code.replace("<<", "mcp.json.parse({ json: ").replace(">>", " })")
    (use,) = [task for task in _tasks(text) if task.tool == "json:parse"]
    return use.arguments["json"]


def _tasks(code: str) -> list[TaskNode]:
    return [node for node in analysed(code).structure.nodes if isinstance(node, TaskNode)]
