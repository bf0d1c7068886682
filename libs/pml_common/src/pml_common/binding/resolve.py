"""Resolution: the patterns of a node's arguments, with the caller's arguments filled in.

A node of a nested capability is named by the calls that lead to it (`n2/n1`): its parameters are
the arguments of the call at `n2`. One computed link makes a parameter computed.
"""

from collections.abc import Mapping
from typing import Final
from uuid import UUID

from pydantic import JsonValue

from pml_common.binding.patterns import (
    ABSENT,
    NOTHING,
    AnyOf,
    BoundNode,
    Computed,
    Digested,
    Fields,
    FromResult,
    Items,
    Known,
    Pattern,
    Spread,
    Steps,
    Value,
    parts,
)
from pml_common.contracts.grant import GrantedNode
from pml_common.contracts.structure import (
    Argument,
    LiteralArgument,
    ObjectArgument,
    ParameterArgument,
    ReferenceArgument,
)
from pml_common.contracts.tool import JsonObject

SPREAD: Final = "..."
"""Prefix of the key of a spread."""


def node_key(capability_id: UUID | None, node_id: str) -> str:
    """Return the key of a node in a grant: the program's own, or a capability's."""
    return node_id if capability_id is None else f"{capability_id}/{node_id}"


class Resolver:
    """The nodes of one grant, given the caller's arguments; each node is resolved once."""

    def __init__(self, nodes: Mapping[str, GrantedNode], args: JsonObject) -> None:
        self._nodes = nodes
        self._args = args
        self._known: dict[str, BoundNode | None] = {}

    def node(self, path: str) -> BoundNode | None:
        """Return the tool call at a node (`n2/n1` through calls of capabilities), or None."""
        if path not in self._known:
            self._known[path] = self._resolve(path)
        return self._known[path]

    def _resolve(self, path: str) -> BoundNode | None:
        *calls, last = path.split("/")
        given: Pattern = Known((self._args,), parameter="")
        within, prefix, repeats = None, "", False
        for node_id in calls:
            node = self._nodes.get(node_key(within, node_id))
            if node is None or node.capability_id is None:
                return None
            given = fields_of(node.arguments, given, prefix)
            within, prefix = node.capability_id, f"{prefix}{node_id}/"
            repeats = repeats or node.repeats
        node = self._nodes.get(node_key(within, last))
        if node is None or node.tool is None:
            return None
        arguments = fields_of(node.arguments, given, prefix)
        return BoundNode(node.tool, arguments, repeats or node.repeats, node.source)


def fields_of(arguments: Mapping[str, Argument], given: Pattern, prefix: str) -> Fields:
    """Return the pattern of an object. A field that a later spread may overwrite matches its own
    value or the spread's."""
    fields: dict[str, Pattern] = {}
    spreads: list[Spread] = []
    for key, argument in arguments.items():
        pattern = resolve(argument, given, prefix)
        if not key.startswith(SPREAD):
            fields[key] = pattern
        elif isinstance(pattern, Fields) and not pattern.spreads:
            fields |= pattern.fields
        elif (whole := _object(pattern)) is not None:
            fields |= {name: _of(pattern, value) for name, value in whole.items()}
        else:
            keys = argument.keys if isinstance(argument, ReferenceArgument) else None
            spread = Spread(pattern, keys, key[len(SPREAD) :])
            for name in fields if keys is None else fields.keys() & set(keys):
                fields[name] = AnyOf((fields[name], pick(pattern, (name,))))
            spreads.append(spread)
    return Fields(fields, tuple(spreads))


def _object(pattern: Pattern) -> JsonObject | None:
    """Return the object, if a pattern has exactly one value and it is an object (or nothing)."""
    values = pattern.values if isinstance(pattern, Known) else ()
    if len(values) != 1:
        return None
    return values[0] if isinstance(values[0], dict) else {} if values[0] in (ABSENT, None) else None


def _of(pattern: Pattern, value: JsonValue) -> Known:
    return Known((value,), pattern.parameter if isinstance(pattern, Known) else None)


def resolve(argument: Argument, given: Pattern, prefix: str) -> Pattern:
    """Return the pattern of one argument; `given` is the pattern of the caller's arguments,
    `prefix` the path of the program's nodes."""
    match argument:
        case LiteralArgument():
            digest = argument.sha256
            return Known((argument.value,)) if digest is None else Digested(digest)
        case ParameterArgument(path=tuple(path)):
            return _parameter(argument, pick(given, path))
        case ParameterArgument():
            return Computed(argument.parameter_name)
        case ReferenceArgument(node_id=str(node_id), path=tuple(path)):
            return FromResult(prefix + node_id, path)
        case ReferenceArgument():
            return Computed(argument.expression)
        case ObjectArgument():
            return fields_of(argument.fields, given, prefix)
        case _:
            return Items(tuple(resolve(item, given, prefix) for item in argument.items))


def _parameter(argument: ParameterArgument, found: Pattern) -> Pattern:
    """Return the pattern of the caller's value, or of the program's default without one.

    JavaScript applies defaults to undefined (destructuring), also to null (`??`), or to all falsy
    values (`||`): a falsy value may stay or be replaced.
    """
    match found:
        case Known():
            values = found.values
            if argument.default:
                default = argument.default[0]
                values = tuple(one for value in values for one in _defaulted(value, default))
            return Known(values, argument.parameter_name)
        case FromResult() if argument.default:
            return AnyOf((found, Known(argument.default)))
        case AnyOf():
            return AnyOf(tuple(_parameter(argument, one) for one in found.patterns))
        case _:
            return found


def _defaulted(value: Value, default: JsonValue) -> tuple[Value, ...]:
    if value is ABSENT:
        return (default,)
    return (value,) if value or isinstance(value, dict | list) else (value, default)


def pick(pattern: Pattern, path: Steps) -> Pattern:
    """Return the pattern of the part at `path` of values that match a pattern."""
    for step in path:
        pattern = _step(pattern, step)
    return pattern


def _step(pattern: Pattern, step: str | int | None) -> Pattern:
    match pattern:
        case Known():
            found = tuple(part for value in pattern.values for part in parts(value, (step,)))
            return Known(found, pattern.parameter)
        case FromResult():
            return FromResult(pattern.node_id, (*pattern.path, step))
        case Digested():
            return Computed("part of a long value")
        case Computed():
            return pattern
        case Fields():
            return NOTHING if step is None else field_of(pattern, str(step))
        case Items() if step is None:
            return AnyOf(tuple(map(_item, pattern.items)))
        case Items():
            inside = isinstance(step, int) and step < len(pattern.items)
            return _item(pattern.items[step]) if inside and isinstance(step, int) else NOTHING
        case _:
            return AnyOf(tuple(_step(one, step) for one in pattern.patterns))


def _item(pattern: Pattern) -> Pattern:
    """Return the pattern of an item of a list passed as JSON: null for an absent value."""
    match pattern:
        case Known(values) if ABSENT in values:
            return Known((*values, None), pattern.parameter)
        case FromResult():
            return AnyOf((pattern, Known((None,))))
        case AnyOf():
            return AnyOf(tuple(map(_item, pattern.patterns)))
        case _:
            return pattern


def field_of(pattern: Fields, key: str) -> Pattern:
    """Return the pattern of one field, present or not; NOTHING if nothing sets it."""
    if key in pattern.fields:
        return pattern.fields[key]
    may_set = [one for one in pattern.spreads if one.keys is None or key in one.keys]
    if not may_set:
        return NOTHING
    return AnyOf((NOTHING, *(pick(one.value, (key,)) for one in may_set)))
