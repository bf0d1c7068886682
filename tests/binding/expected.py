"""The values of an argument that an approver was shown, implemented from the rules in the
documentation, independently of the product's own comparison, which it tests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

Json = Any
"""A result of `json.loads`."""

Step = str | int | None
"""A key, an index, or None for any one element."""

MISSING: Final = object()
"""A value without JSON, which is dropped."""


@dataclass(frozen=True)
class Known:
    """Exactly this value; MISSING: none."""

    value: object


@dataclass(frozen=True)
class Result:
    """The value at `path` in some earlier result of the node."""

    node: str
    path: tuple[Step, ...]


@dataclass(frozen=True)
class Either:
    """One of several values."""

    options: "tuple[Expected, ...]"


@dataclass(frozen=True)
class Fields:
    """An object: these fields, and those that `spreads` may set."""

    fields: "Mapping[str, Expected]"
    spreads: "tuple[Spread, ...]" = ()


@dataclass(frozen=True)
class Items:
    """A list; more items may follow unless `closed`."""

    items: "tuple[Expected, ...]"
    closed: bool = True


@dataclass(frozen=True)
class Computed:
    """Any value: the approver was told that it is computed."""


@dataclass(frozen=True)
class Spread:
    """All fields of `source`; of a computed source the `keys` that it may set, None for any."""

    source: "Expected"
    keys: tuple[str, ...] | None = None


Expected = Known | Result | Either | Fields | Items | Computed
COMPUTED: Final = Computed()


def same(one: object, other: object) -> bool:
    """Whether two values are the same JSON in JavaScript: numbers are doubles, true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, int | float) and isinstance(other, int | float):
        return float(one) == float(other)
    if isinstance(one, dict) and isinstance(other, dict):
        left, right = cast(dict[str, Json], one), cast(dict[str, Json], other)
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(one, list) and isinstance(other, list):
        ones, others = cast(list[Json], one), cast(list[Json], other)
        return len(ones) == len(others) and all(map(same, ones, others))
    return (one is None or isinstance(one, str)) and one == other


def at(value: object, path: Sequence[Step]) -> list[object]:
    """The values at a path: one, none, or any number for elements."""
    found = [value]
    for step in path:
        found = [inner for each in found for inner in _into(each, step)]
    return found


def _into(value: object, step: Step) -> list[object]:
    if isinstance(value, str):
        return list(value) if step is None else _into(_units(value), step)
    if isinstance(value, list):
        items = cast(list[object], value)
        if step is None:
            return list(items)
        return [items[int(step)]] if str(step) in map(str, range(len(items))) else []
    if isinstance(value, dict) and step is not None:
        fields = cast(dict[str, object], value)
        return [fields[str(step)]] if str(step) in fields else []
    return []


def _units(text: str) -> list[str]:
    """The characters that an index into a text counts: UTF-16 code units."""
    units = text.encode("utf-16-le", "surrogatepass")
    pairs = (units[at : at + 2] for at in range(0, len(units), 2))
    return [pair.decode("utf-16-le", "surrogatepass") for pair in pairs]


def part(expected: Expected, path: Sequence[Step]) -> Expected:
    """The expectation at a path inside."""
    return _inner(expected, path[0], path) if path else expected


def _inner(expected: Expected, first: Step, path: Sequence[Step]) -> Expected:
    rest = path[1:]
    match expected:
        case Known(value):
            inner = at(value, path)
            return Either(tuple(map(Known, inner))) if inner else Known(MISSING)
        case Result(node, before):
            return Result(node, (*before, *path))
        case Either(options):
            return Either(tuple(part(option, path) for option in options))
        case Fields(fields, spreads):
            if isinstance(first, str) and first in fields:
                return part(fields[first], rest)
            return part(_spread_at(spreads, first), rest)
        case Items():
            return _item(expected, first, rest)
        case Computed():
            return COMPUTED


def _item(expected: Items, which: Step, rest: Sequence[Step]) -> Expected:
    items = expected.items
    if not expected.closed:
        return COMPUTED
    if which is None:
        return Either(tuple(part(item, rest) for item in items))
    if isinstance(which, int) and 0 <= which < len(items):
        return part(items[which], rest)
    return Known(MISSING)


def _spread_at(spreads: Sequence[Spread], key: Step) -> Expected:
    if not isinstance(key, str):
        return Known(MISSING)
    told = [
        part(spread.source, (key,))
        for spread in spreads
        if spread.keys is None or key in spread.keys
    ]
    return Either((*told, Known(MISSING)))


def defaulted(given: Expected, default: Expected) -> Expected:
    """The caller's value, or the default, also where `||` replaces null, 0 and ""."""
    if isinstance(given, Known) and given.value is MISSING:
        return default
    return Either((given, default))
