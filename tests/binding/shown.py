"""The calls shown to an approver, read from the structure and the capabilities in the REST API,
with the expectation of every argument."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from tests.binding.expected import (
    COMPUTED,
    MISSING,
    Either,
    Expected,
    Fields,
    Items,
    Json,
    Known,
    Result,
    Spread,
    defaulted,
    part,
)

SPREAD: Final = "..."
DEEPEST: Final = 3


@dataclass(frozen=True)
class ShownCall:
    """One call; `node` includes the path to it through capabilities (`n2/n1`)."""

    node: str
    tool: str
    arguments: Fields
    repeats: bool


def shown_calls(workflow: Json) -> list[ShownCall]:
    """All tool calls that a workflow showed, including those inside capabilities."""
    nested: list[Json] = workflow["analysis"]["capabilities"]
    inside: dict[str, Json] = {one["capability_id"]: one.get("nodes", ()) for one in nested}
    return list(_calls(workflow["structure"]["nodes"], Known(workflow["args"]), "", inside))


def _calls(
    nodes: Json,
    caller: Expected,
    way: str,
    inside: Mapping[str, Json],
    *,
    repeats: bool = False,
    depth: int = 0,
) -> Iterator[ShownCall]:
    for node in nodes:
        if node["type"] not in ("task", "capability"):
            continue
        given = _fields(node["arguments"], caller, way)
        again = repeats or node.get("repeats", True)
        here = f"{way}{node['id']}"
        if node["type"] == "task":
            yield ShownCall(here, node["tool"], given, again)
        elif depth < DEEPEST:
            into = inside.get(node["capability_id"], ())
            yield from _calls(into, given, f"{here}/", inside, repeats=again, depth=depth + 1)


def _fields(arguments: Mapping[str, Json], caller: Expected, way: str) -> Fields:
    fields: dict[str, Expected] = {}
    spreads: list[Spread] = []
    for name, argument in arguments.items():
        expected = _expected(argument, caller, way)
        if name.startswith(SPREAD) and _is_spread(expected):
            keys = argument.get("keys")
            spreads.append(Spread(expected, None if keys is None else tuple(keys)))
        else:
            fields[name] = expected
    return Fields(fields, tuple(spreads))


def _is_spread(expected: Expected) -> bool:
    """Whether it can be a spread: an argument's own name may begin like one."""
    return not isinstance(expected, Known) or isinstance(expected.value, dict)


def _expected(argument: Json, caller: Expected, way: str) -> Expected:
    match argument["type"]:
        case "literal":
            return Known(argument["value"])
        case "parameter":
            return _parameter(argument, caller)
        case "reference":
            path = argument.get("path")
            if path is None or argument.get("node_id") is None:
                return COMPUTED
            return Result(f"{way}{argument['node_id']}", tuple(path))
        case "object":
            return _fields(argument["fields"], caller, way)
        case "array":
            return _items(argument["items"], caller, way)
        case other:
            raise AssertionError(f"an argument of a kind that is not known here: {other}")


def _parameter(argument: Json, caller: Expected) -> Expected:
    path = argument.get("path")
    if path is None:
        return COMPUTED
    given, default = part(caller, tuple(path)), argument.get("default", ())
    return defaulted(given, Known(default[0])) if default else given


def _items(items: Json, caller: Expected, way: str) -> Expected:
    told: list[Expected] = []
    for item in items:
        if item["type"] == "reference" and item["expression"].startswith(SPREAD):
            return Items(tuple(told), closed=False)
        told.append(_expected(item, caller, way))
    return Items(tuple(told))


def has_computed(expected: Expected) -> bool:
    """Whether any part of it was shown as computed."""
    match expected:
        case Known() | Result():
            return False
        case Either(options):
            return any(map(has_computed, options))
        case Fields(fields, spreads):
            return any(map(has_computed, fields.values())) or bool(spreads)
        case Items(items, closed):
            return not closed or any(map(has_computed, items))
        case _:
            return True


def may_be_missing(expected: Expected) -> bool:
    """Whether a call may omit the argument."""
    match expected:
        case Known(value):
            return value is MISSING
        case Either(options):
            return any(map(may_be_missing, options))
        case Fields() | Items():
            return False
        case _:
            return True
