"""Where a value comes from, as data; how parts and alternatives of values combine."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from pml_analysis.syntax.patterns import Path, Step
from pml_analysis.syntax.tree import Node

Primitive = str | int | float | bool | None
JsonType = Literal["string", "number", "boolean", "null"]


@dataclass(frozen=True, slots=True)
class Constant:
    """A value known before the run; null stands for undefined too."""

    value: Primitive
    type: JsonType


@dataclass(frozen=True, slots=True)
class FromTools:
    """Part of `mcp`: () all servers, (s,) one server, (s, t) one tool."""

    path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CallByName:
    """`mcp.call`."""


@dataclass(frozen=True, slots=True)
class FromCapabilities:
    """Part of `capabilities`: () all of them, (c,) one, by the name it has there."""

    path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AnyTool:
    """A value that may be a tool or hold some; only the run can tell."""


@dataclass(frozen=True, slots=True)
class FromArguments:
    """Part of what the caller hands in."""

    path: Path = ()


@dataclass(frozen=True, slots=True)
class FromCall:
    """Part of what one call expression returns."""

    call: Node
    path: Path = ()


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that holds no tool and of which nothing else is known."""


Origin = (
    Constant
    | FromTools
    | CallByName
    | FromCapabilities
    | AnyTool
    | FromArguments
    | FromCall
    | Unknown
)
ANY_TOOL: Final = AnyTool()
UNKNOWN: Final = Unknown()
_LONGEST_PATH: Final = 60
"""How many parts of parts a name stands for: names for parts of names would fill the memory."""

ABSENT: Final = Constant(None, "null")


def constant(value: str | int | float | bool) -> Constant:
    """A constant with its JSON type; two are equal when JavaScript's `===` says so."""
    match value:
        case bool():
            return Constant(value, "boolean")
        case str():
            return Constant(value, "string")
        case _:
            return Constant(value, "number")


def holds_tools(origin: Origin) -> bool:
    """Whether a call through such a value could reach a tool."""
    return isinstance(origin, FromTools | CallByName | FromCapabilities | AnyTool)


def part_of(origin: Origin, step: Step) -> Origin:
    """The origin of one part of a value."""
    match origin:
        case FromTools(path=path):
            if not isinstance(step, str) or len(path) > 1:
                return ANY_TOOL
            return CallByName() if (*path, step) == ("call",) else FromTools((*path, step))
        case FromCapabilities(path=path):
            return FromCapabilities((step,)) if isinstance(step, str) and not path else ANY_TOOL
        case CallByName():
            return ANY_TOOL
        case FromArguments(path=path):
            return FromArguments((*path, step))
        case FromCall(call=call, path=path):
            return FromCall(call, (*path, step))
        case Constant():
            return UNKNOWN
        case _:
            return origin


def either(origins: Iterable[Origin]) -> Origin:
    """The origin of a value that is one of several.

    That it may be absent too is left aside, except beside constants: they are told as facts.
    """
    found = list(dict.fromkeys(origins))
    if len(found) == 1:
        return found[0]
    if any(not isinstance(origin, Constant) for origin in found):
        found = [origin for origin in found if origin != ABSENT]
    if len(found) == 1:
        return found[0]
    return ANY_TOOL if any(holds_tools(origin) for origin in found) else UNKNOWN


def bounded(origin: Origin) -> Origin:
    """An origin that a name may have, unknown where it is a part of very many parts."""
    is_part = isinstance(origin, FromArguments | FromCall)
    return UNKNOWN if is_part and len(origin.path) > _LONGEST_PATH else origin


def as_key(value: Primitive) -> Step:
    """The property key that a value stands for in `object[value]`; None for unusual ones."""
    return value if isinstance(value, str) or type(value) is int else None
