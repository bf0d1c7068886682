"""Lifting: literal arguments of calls become parameters, so that one program serves many
inputs. Called without arguments, it behaves as before."""

import json
import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain, count
from typing import Final

from pydantic import JsonValue

from pml_analysis.arguments.data_flow_edges import values_in
from pml_analysis.names.constants import json_value
from pml_analysis.names.origins import BOUND_ROOTS, IMPLICIT_ROOTS, Origins
from pml_analysis.parameters.parameter_uses import ParameterUses
from pml_analysis.structure.calls import CallSite
from pml_analysis.syntax.edits import Wrap, apply
from pml_analysis.syntax.node_kinds import LIFTABLE, USE_NAMES
from pml_analysis.syntax.tree import Node

INHERITED: Final = frozenset(
    {
        "__defineGetter__",
        "__defineSetter__",
        "__lookupGetter__",
        "__lookupSetter__",
        "__proto__",
        "constructor",
        "hasOwnProperty",
        "isPrototypeOf",
        "propertyIsEnumerable",
        "toLocaleString",
        "toString",
        "valueOf",
    }
)
"""Names that every object has a value for."""

_PLAIN_NAME: Final = re.compile(r"[A-Za-z_$][\w$]*", re.ASCII)
_MAX_NAMES: Final = 10


@dataclass(frozen=True)
class LiftedParameter:
    """A parameter made from literals: the calls that use it, and its default."""

    node_ids: tuple[str, ...]
    default: JsonValue


@dataclass(frozen=True)
class Rewritten:
    """A program with its literals lifted, and the resulting parameters, by name."""

    code: str
    parameters: Mapping[str, LiftedParameter]


@dataclass
class _Place:
    """A literal, the keys that lead to it in the first call that uses it, and all such calls."""

    node: Node
    to: tuple[str, ...]
    default: JsonValue
    node_ids: dict[str, None]


def lift_literals(
    uses: ParameterUses,
    calls: Iterable[tuple[str, CallSite]],
    taken: Iterable[str],
    *,
    through_names: bool = True,
) -> Rewritten:
    """Put `args.<key> ?? ` before every literal argument of a call; the rest of the text is
    unchanged.

    `calls` are the call sites by node id; `taken` the names of existing parameters. A new one is
    named after the last key that leads to its literal, numbered if that is taken: `path`, `path_2`.
    Those with the same keys and value are one. Lists are lifted whole, objects field by field; with
    `through_names` a constant is lifted where it is declared. Null is not lifted: no argument could
    replace it. Where all arguments are used at once nothing is lifted, because an argument of any
    name has a use already.
    """
    origins = uses.origins
    root = arguments_root(origins) if uses.all_known() else None
    places = _places(origins, calls, through_names=through_names) if root is not None else []
    parameters: dict[str, LiftedParameter] = {}
    wraps: list[Wrap] = []
    for name, same in _named(places, {*taken, *INHERITED}).items():
        node_ids = dict.fromkeys(node_id for place in same for node_id in place.node_ids)
        parameters[name] = LiftedParameter(tuple(node_ids), same[0].default)
        parameter = f"{root}{key_of(name)}"
        wraps += (Wrap(one.node.start, one.node.end, f"{parameter} ?? ") for one in same)
    return Rewritten(apply(origins.tree.source.text, wraps).text, parameters)


def arguments_root(origins: Origins) -> str | None:
    """Return a name that denotes the caller's arguments in every scope."""
    scopes, tree = origins.scopes, origins.tree
    declared = {binding.name for binding in scopes.bindings}
    used = {tree.name(node) for node in scopes.free} - origins.implicit_roots
    possible = [*BOUND_ROOTS, *(name for name in IMPLICIT_ROOTS if name not in used)]
    return next((name for name in possible if name not in declared), None)


def key_of(name: str) -> str:
    """Return the access to a property."""
    return f".{name}" if _PLAIN_NAME.fullmatch(name) else f"[{json.dumps(name)}]"


def _places(
    origins: Origins, calls: Iterable[tuple[str, CallSite]], *, through_names: bool
) -> list[_Place]:
    """Yield the literal arguments of calls, in the order of the calls."""
    found: dict[int, _Place] = {}
    for node_id, site in calls:
        for value in values_in(origins, site.argument):
            node = _literal_of(origins, value.node.inner, through_names=through_names)
            default = json_value(origins, node) if node is not None else None
            if node is not None and default is not None and value.place == "field":
                place = found.setdefault(node.index, _Place(node, value.to, default, {}))
                place.node_ids[node_id] = None
    return list(found.values())


def _literal_of(origins: Origins, node: Node, *, through_names: bool) -> Node | None:
    """Return the literal that a value is, or that the constant it names is."""
    for _ in range(_MAX_NAMES if through_names else 0):
        binding = origins.scopes.binding(node)
        if binding is None or binding.kind != "const" or len(binding.parts) != 1:
            break
        value, path = binding.parts[0].value, binding.parts[0].path
        if value is None or path:
            return None
        node = value.inner
    has_names = any(part.kind in USE_NAMES for part in origins.tree.subtree(node))
    return node if _is_literal(node) and not has_names else None


def _is_literal(node: Node) -> bool:
    """Whether it is one, or a sum of some; `??` may precede that, but not `&&`."""
    is_sum = node.kind == "binary_expression" and node["operator"].kind == "+"
    return is_sum or node.kind in LIFTABLE


def _named(places: Iterable[_Place], taken: set[str]) -> dict[str, list[_Place]]:
    """Group places by the name of their parameter."""
    names: dict[tuple[tuple[str, ...], str], str] = {}
    found: dict[str, list[_Place]] = {}
    for place in places:
        same = (place.to, json.dumps(place.default, sort_keys=True))
        if same not in names:
            names[same] = free_name(place.to[-1], taken)
            taken.add(names[same])
        found.setdefault(names[same], []).append(place)
    return found


def free_name(key: str, taken: Container[str]) -> str:
    """Return the name, or the first numbered one that is not taken."""
    numbered = (f"{key}_{number}" for number in count(2))
    return next(name for name in chain([key], numbered) if name not in taken)
