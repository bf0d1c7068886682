"""Origins of values, as data, and how those of parts and alternatives combine."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from pml_analysis.syntax.patterns import Path, Step
from pml_analysis.syntax.tree import Node

Primitive = str | int | float | bool | None
JsonType = Literal["string", "number", "boolean", "null"]


@dataclass(frozen=True, slots=True)
class Constant:
    """A statically known value; null stands for undefined too."""

    value: Primitive
    type: JsonType


@dataclass(frozen=True, slots=True)
class FromTools:
    """Part of `mcp`: () all servers, (s,) one server, (s, t) one tool."""

    path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CallByName:
    """The function `mcp.call`."""


@dataclass(frozen=True, slots=True)
class FromCapabilities:
    """Part of `capabilities`: () all of them, (c,) one, by its name there."""

    path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AnyTool:
    """A value that may be or contain a tool, known only at run time."""


@dataclass(frozen=True, slots=True)
class FromArguments:
    """Part of the caller's arguments."""

    path: Path = ()


@dataclass(frozen=True, slots=True)
class FromCall:
    """Part of the result of one call expression."""

    call: Node
    path: Path = ()


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that contains no tool and is otherwise unknown."""


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
_MAX_PATH: Final = 60
"""Maximum length of a path: names for parts of names would exhaust the memory."""

ABSENT: Final = Constant(None, "null")


def constant(value: str | int | float | bool) -> Constant:
    """Return a constant with its JSON type; two are equal when JavaScript's `===` holds."""
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
    """Return the origin of one part of a value."""
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
    """Return the origin of a value that is one of several.

    A possible absence is ignored, except beside constants, which are reported as certain.
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
    """Return an origin unchanged, or unknown where its path is too long."""
    is_part = isinstance(origin, FromArguments | FromCall)
    return UNKNOWN if is_part and len(origin.path) > _MAX_PATH else origin


def as_key(value: Primitive) -> Step:
    """Return the property key that a value stands for in `object[value]`; None for unusual ones."""
    return value if isinstance(value, str) or type(value) is int else None
