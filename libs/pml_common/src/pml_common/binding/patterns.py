"""Patterns that arguments of a call must match, with all known values filled in."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from pydantic import JsonValue

from pml_common.contracts.structure import ResultStep

Steps = tuple[ResultStep, ...]


class Absent(Enum):
    """An absent value: JavaScript's undefined."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT
Value = JsonValue | Absent


@dataclass(frozen=True)
class Known:
    """One of these values; `parameter` is the caller's argument that they come from, if any."""

    values: tuple[Value, ...]
    parameter: str | None = None


@dataclass(frozen=True)
class Digested:
    """The value with this SHA-256 of its canonical JSON."""

    sha256: str


@dataclass(frozen=True)
class FromResult:
    """The part at `path` of any earlier successful result of the node; None steps: any element."""

    node_id: str
    path: Steps


@dataclass(frozen=True)
class Computed:
    """Any value: unknown before the run."""

    expression: str


@dataclass(frozen=True)
class Spread:
    """The fields that `...value` may set: `keys`, None for any, each to a part of the value."""

    value: "Pattern"
    keys: tuple[str, ...] | None
    expression: str


@dataclass(frozen=True)
class Fields:
    """An object with these fields and those that a spread sets; no others."""

    fields: Mapping[str, "Pattern"]
    spreads: tuple[Spread, ...] = ()


@dataclass(frozen=True)
class Items:
    """A list of exactly these items."""

    items: tuple["Pattern", ...]


@dataclass(frozen=True)
class AnyOf:
    """A value that matches one of these patterns."""

    patterns: tuple["Pattern", ...]


Pattern = Known | Digested | FromResult | Computed | Fields | Items | AnyOf

Outcomes = Callable[[str], Sequence[JsonValue]]
"""Returns the results of a node's successful calls so far, in any order."""

NOTHING: Final = Known((ABSENT,))


@dataclass(frozen=True)
class BoundNode:
    """A tool call as shown to the approver: at most once in a run unless it `repeats`. Results of a
    `source` appear in other nodes' arguments."""

    tool: str
    arguments: Fields = field(default_factory=lambda: Fields({}))
    repeats: bool = True
    source: bool = False


def at(value: Value, step: str | int) -> Value:
    """Return a member of a JSON value by JavaScript's rules."""
    if isinstance(value, list | str):
        items = value if isinstance(value, list) else _units(value)
        index = int(step) if str(step).isdecimal() else -1
        return items[index] if 0 <= index < len(items) else ABSENT
    if isinstance(value, dict):
        return value.get(str(step), ABSENT)
    return ABSENT


def _units(text: str) -> list[str]:
    """Split a text into UTF-16 code units, which JavaScript's indices count."""
    raw = text.encode("utf-16-le", "surrogatepass")
    pairs = (raw[start : start + 2] for start in range(0, len(raw), 2))
    return [pair.decode("utf-16-le", "surrogatepass") for pair in pairs]


def parts(value: Value, path: Steps) -> list[Value]:
    """Return the values at a path: one, or for each None step those of all elements (of a text:
    its code points)."""
    found: list[Value] = [value]
    for step in path:
        if step is None:
            found = [item for one in found if isinstance(one, list | str) for item in one]
        else:
            found = [at(one, step) for one in found]
    return found
