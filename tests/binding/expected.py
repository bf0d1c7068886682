"""What an approver was shown of an argument, as a set of values: written from the rules in the
documentation, not from the product's own comparison, which it judges."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

Json = Any
"""What `json.loads` returns."""

Step = str | int | None
"""A key, an index, or None for any one element."""

MISSING: Final = object()
"""What JSON cannot say and drops."""


@dataclass(frozen=True)
class Known:
    """This very value; MISSING: none."""

    value: object


@dataclass(frozen=True)
class Result:
    """The value at `path` in some earlier result of the node."""

    node: str
    path: tuple[Step, ...]


@dataclass(frozen=True)
class Either:
    """Any of several."""

    options: "tuple[Expected, ...]"


@dataclass(frozen=True)
class Fields:
    """An object: these fields, and what `spreads` may set beside them."""

    fields: "Mapping[str, Expected]"
    spreads: "tuple[Spread, ...]" = ()


@dataclass(frozen=True)
class Items:
    """A list; not `closed`: more may follow."""

    items: "tuple[Expected, ...]"
    closed: bool = True


@dataclass(frozen=True)
class Computed:
    """Anything: the approver was told so."""


@dataclass(frozen=True)
class Spread:
    """Everything in `source`; of what is computed the `keys` that it may set, None for any."""

    source: "Expected"
    keys: tuple[str, ...] | None = None


Expected = Known | Result | Either | Fields | Items | Computed
COMPUTED: Final = Computed()


def same(one: object, other: object) -> bool:
    """Whether two values are the same JSON to JavaScript: numbers are doubles, true is not 1."""
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
    """The values that a path leads to: one, none, or with elements any number."""
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
    """What an index into a text counts."""
    units = text.encode("utf-16-le", "surrogatepass")
    pairs = (units[at : at + 2] for at in range(0, len(units), 2))
    return [pair.decode("utf-16-le", "surrogatepass") for pair in pairs]


def part(expected: Expected, path: Sequence[Step]) -> Expected:
    """What is expected at a path inside."""
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
    """The caller's value, or else the default: also where `||` takes null, 0 and "" for none."""
    if isinstance(given, Known) and given.value is MISSING:
        return default
    return Either((given, default))
