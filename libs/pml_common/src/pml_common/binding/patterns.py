"""Patterns: what an argument of a call must be like, once everything known is filled in."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from pydantic import JsonValue

from pml_common.contracts.structure import ResultStep

Steps = tuple[ResultStep, ...]


class Absent(Enum):
    """A value that is not there: what JavaScript calls undefined."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT
Value = JsonValue | Absent


@dataclass(frozen=True)
class Known:
    """One of these values; `parameter` is the caller's argument that they come from, if one is."""

    values: tuple[Value, ...]
    parameter: str | None = None


@dataclass(frozen=True)
class Digested:
    """The value with this SHA-256 of its canonical JSON."""

    sha256: str


@dataclass(frozen=True)
class FromResult:
    """The part at `path` of some earlier successful result of the node; None steps: any element."""

    node_id: str
    path: Steps


@dataclass(frozen=True)
class Computed:
    """Anything: nobody can say before the run."""

    expression: str


@dataclass(frozen=True)
class Spread:
    """What `...value` may set: `keys`, None for any, each to a part of the value."""

    value: "Pattern"
    keys: tuple[str, ...] | None
    expression: str


@dataclass(frozen=True)
class Fields:
    """An object with these fields, and such as a spread sets; no others."""

    fields: Mapping[str, "Pattern"]
    spreads: tuple[Spread, ...] = ()


@dataclass(frozen=True)
class Items:
    """A list of just these items."""

    items: tuple["Pattern", ...]


@dataclass(frozen=True)
class AnyOf:
    """What fits one of these."""

    patterns: tuple["Pattern", ...]


Pattern = Known | Digested | FromResult | Computed | Fields | Items | AnyOf

Outcomes = Callable[[str], Sequence[JsonValue]]
"""The results of the successful calls of a node so far, in any order."""

NOTHING: Final = Known((ABSENT,))


@dataclass(frozen=True)
class BoundNode:
    """A call of a tool as it was shown: at most once in a run unless it `repeats`. Of the results
    of a `source` other nodes' arguments are parts."""

    tool: str
    arguments: Fields = field(default_factory=lambda: Fields({}))
    repeats: bool = True
    source: bool = False


def at(value: Value, step: str | int) -> Value:
    """The member of a JSON value, as JavaScript finds it."""
    if isinstance(value, list | str):
        items = value if isinstance(value, list) else _units(value)
        index = int(step) if str(step).isdecimal() else -1
        return items[index] if 0 <= index < len(items) else ABSENT
    if isinstance(value, dict):
        return value.get(str(step), ABSENT)
    return ABSENT


def _units(text: str) -> list[str]:
    """The UTF-16 units of a text, which an index counts."""
    raw = text.encode("utf-16-le", "surrogatepass")
    pairs = (raw[start : start + 2] for start in range(0, len(raw), 2))
    return [pair.decode("utf-16-le", "surrogatepass") for pair in pairs]


def parts(value: Value, path: Steps) -> list[Value]:
    """The values at a path: one, or for each None step those of all elements; those of a text are
    its code points."""
    found: list[Value] = [value]
    for step in path:
        if step is None:
            found = [item for one in found if isinstance(one, list | str) for item in one]
        else:
            found = [at(one, step) for one in found]
    return found
