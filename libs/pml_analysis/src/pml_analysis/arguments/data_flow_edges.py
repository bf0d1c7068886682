"""Data flow edges: the results that calls' arguments are made from, as edges of the structure.

Edges come from references in the program; two tools whose schemas merely fit each other get none.
Schemas determine how much an edge covers, where they are known.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pml_analysis.arguments.parameter_paths import dotted
from pml_analysis.decision.toolbox import ToolSignature
from pml_analysis.names.entries import entries
from pml_analysis.names.origins import Origins
from pml_analysis.structure.edge_set import TooManyEdges
from pml_analysis.syntax.patterns import Path
from pml_analysis.syntax.tree import Node
from pml_common.contracts.structure import Edge, FieldMapping
from pml_common.provides.coverage import coverage_of
from pml_common.provides.fields import WHOLE
from pml_common.provides.json_schema import ANYTHING, Described

_MAX_DEPTH: Final = 30
"""Maximum depth of nested objects that are opened."""


@dataclass(frozen=True, slots=True)
class Use:
    """A result, used in a call's arguments. `path`: which part; None where it is an operand.

    `to` is the argument that it becomes, through nested objects; `is_spread`: each of its fields
    becomes one there, under its own name.
    """

    producer: str
    path: Path | None
    to: tuple[str, ...]
    is_spread: bool = False


def uses_in(
    argument: Node | None,
    origins: Origins,
    exact: Callable[[Node], tuple[str, Path] | None],
    producers: Callable[[Node], Sequence[str]],
) -> list[Use]:
    """Return the results that a call's argument is made from, in source order.

    `exact` returns the node whose result an expression is, and the part of it; `producers` those
    whose results flow into a computed one.
    """
    found: list[Use] = []
    for value in values_in(origins, argument):
        result = exact(value.node) if value.place != "somewhere" else None
        is_spread = value.place != "field"
        if result is not None:
            found.append(Use(*result, value.to, is_spread))
        else:
            makers = producers(value.node)
            found += (Use(producer, None, value.to, is_spread) for producer in makers)
    return found


@dataclass(frozen=True, slots=True)
class Value:
    """A value in a call's argument. `to` are the keys that lead to it; where it is spread, or
    stored under a key known only at run time, the keys that lead to that object."""

    node: Node
    to: tuple[str, ...]
    place: Literal["field", "spread", "somewhere"] = "field"


def values_in(origins: Origins, argument: Node | None, to: tuple[str, ...] = ()) -> Iterator[Value]:
    """Yield the values in an object, and in nested objects, in source order."""
    for entry in entries(origins, argument) if argument is not None else ():
        if entry.key is None:
            yield Value(entry.value, to, "spread" if entry.computed is None else "somewhere")
        elif entry.value.inner.kind == "object" and len(to) < _MAX_DEPTH:
            yield from values_in(origins, entry.value, (*to, entry.key))
        else:
            yield Value(entry.value, (*to, entry.key))


def edges_of_uses(
    uses: Iterable[tuple[str, Sequence[Use]]], tools: Mapping[str, ToolSignature], *, limit: int
) -> list[Edge]:
    """Build the edges of these uses, each with the node that it ends at.

    `tools` is by node; the schemas of a missing one are unknown. Raises TooManyEdges beyond
    `limit`.
    """
    edges: list[Edge] = []
    for consumer, found in uses:
        by_producer: dict[str, list[Use]] = {}
        for use in found:
            if use.producer != consumer:
                by_producer.setdefault(use.producer, []).append(use)
        if len(edges) + len(by_producer) > limit:
            raise TooManyEdges
        for producer, parts in by_producer.items():
            given = tools[producer].outputs if producer in tools else ANYTHING
            needed = tools[consumer].inputs if consumer in tools else ANYTHING
            edges.append(_edge(producer, consumer, parts, given, needed))
    return edges


def _edge(
    producer: str, consumer: str, uses: Sequence[Use], given: Described, needed: Described
) -> Edge:
    flows = [flow for use in uses for flow in _flows(use, given, needed)]
    fed = {str(to[0]) for _, to in flows} | {use.to[0] for use in uses if use.to}
    known = needed.properties.keys() | needed.required
    return Edge.model_validate(
        {
            "from": producer,
            "to": consumer,
            "type": "provides",
            "coverage": coverage_of(fed & known, needed.required),
            "field_mapping": tuple(
                FieldMapping(
                    from_field=dotted(path) or WHOLE,
                    to_field=dotted(to),
                    type_compatible=given.at(path).meets(needed.at(to)),
                )
                for path, to in flows
            ),
        }
    )


def _flows(use: Use, given: Described, needed: Described) -> Iterator[tuple[Path, Path]]:
    """Map a part to an argument, where the part is known exactly."""
    if use.path is None:
        return
    if not use.is_spread:
        yield use.path, use.to
        return
    takes = needed.at(use.to).properties
    for name in given.at(use.path).properties:
        if name in takes:
            yield (*use.path, name), (*use.to, name)
