"""Provides pass (A7): which call's result feeds which call, and how much of what it needs."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, cast

from pml_analyzer.domain.arguments import dotted
from pml_analyzer.domain.calls import CallSite
from pml_analyzer.domain.data_flow import DataFlow
from pml_analyzer.domain.edges import TooManyEdges
from pml_analyzer.domain.entries import entries
from pml_analyzer.domain.expansion import Instance
from pml_analyzer.domain.origins import Origins
from pml_analyzer.domain.toolbox import Toolbox
from pml_analyzer.syntax.patterns import Path
from pml_common.contracts.structure import Edge, FieldMapping
from pml_common.contracts.tool import JsonObject, ToolDefinition

Coverage = Literal["strict", "partial", "optional"]
WHOLE: Final = "$"
"""The field name of a result as a whole."""


def compute_coverage(
    outputs: Iterable[str], required: Iterable[str], optional: Iterable[str]
) -> Coverage | None:
    """How much of a consumer's input a provider's outputs cover.

    strict: all that is required; partial: some of it; optional: only what need not be given.
    """
    given, needed = set(outputs), set(required)
    if needed and needed <= given:
        return "strict"
    if needed & given:
        return "partial"
    return "optional" if given & set(optional) else None


def provides_edges(
    sites: Mapping[str, tuple[CallSite, Instance]],
    origins: Origins,
    flow: DataFlow,
    toolbox: Toolbox,
    *,
    limit: int,
) -> list[Edge]:
    """An edge for every call whose result is used in the arguments of another, in source order.

    Edges come from references only: that schemas alone would fit makes none. `sites` is by node
    id. Coverage and field mapping are there where both tools' schemas are known. Raises
    TooManyEdges beyond `limit`.
    """
    edges: list[Edge] = []
    for consumer_id, (consumer, at) in sites.items():
        feeds = _feeds(consumer, at, origins, flow)
        if len(edges) + len(feeds) > limit:
            raise TooManyEdges
        for producer_id, fields in feeds.items():
            if producer_id != consumer_id:
                producer = toolbox[sites[producer_id][0]]
                edges.append(_edge(producer_id, consumer_id, fields, producer, toolbox[consumer]))
    return edges


class _Field:
    """One use of a result: which part of it, where exactly that is known, as which field."""

    __slots__ = ("path", "to")

    def __init__(self, path: Path | None, to: str | None) -> None:
        self.path = path
        self.to = to
        """None: each field under its own name."""


def _feeds(
    consumer: CallSite, at: Instance, origins: Origins, flow: DataFlow
) -> dict[str, list[_Field]]:
    """By producer: the fields of a call's arguments that are made from its result."""
    feeds: dict[str, list[_Field]] = {}
    for entry in entries(origins, consumer.argument) if consumer.argument is not None else ():
        exact = flow.exact(entry.value, at)
        if exact is not None:
            producer, path = exact
            feeds.setdefault(producer, []).append(_Field(path, entry.key))
        else:
            for producer in flow.producers(entry.value, at):
                feeds.setdefault(producer, []).append(_Field(None, entry.key))
    return feeds


def _edge(
    producer_id: str,
    consumer_id: str,
    fields: Sequence[_Field],
    producer: ToolDefinition,
    consumer: ToolDefinition,
) -> Edge:
    coverage: Coverage | None = None
    mapping: list[FieldMapping] = []
    if producer.output_schema is not None:
        inputs = _properties(consumer.input_schema)
        required = [name for name in _strings(consumer.input_schema.get("required"))]
        outputs = producer.output_schema
        mapping = list(_mapping(fields, outputs, inputs))
        covered = {field.to for field in fields if field.to is not None}
        covered |= {field.to_field for field in mapping}
        coverage = compute_coverage(covered, required, inputs.keys() - set(required))
    return Edge.model_validate(
        {
            "from": producer_id,
            "to": consumer_id,
            "type": "provides",
            "coverage": coverage,
            "field_mapping": tuple(mapping),
        }
    )


def _mapping(
    fields: Sequence[_Field], outputs: JsonObject, inputs: Mapping[str, JsonObject]
) -> Iterable[FieldMapping]:
    """Field by field, where the part of the result is known exactly."""
    for field in fields:
        if field.path is None:
            continue
        if field.to is not None:
            given = _schema_at(outputs, field.path)
            yield _mapped(dotted(field.path) or WHOLE, field.to, given, inputs.get(field.to, {}))
            continue
        for name, given in _properties(_schema_at(outputs, field.path)).items():
            if name in inputs:
                yield _mapped(dotted((*field.path, name)), name, given, inputs[name])


def _mapped(source: str, target: str, given: JsonObject, wanted: JsonObject) -> FieldMapping:
    compatible = _types_meet(given, wanted)
    return FieldMapping(from_field=source, to_field=target, type_compatible=compatible)


def _types_meet(given: JsonObject, wanted: JsonObject) -> bool:
    """Whether a value of one schema may be one of the other; a missing type is any type."""
    first, second = _types(given), _types(wanted)
    return not first or not second or bool(first & second)


def _types(schema: JsonObject) -> set[str]:
    kind = schema.get("type")
    names = {kind} if isinstance(kind, str) else set(_strings(kind))
    return {"number" if name == "integer" else name for name in names}


def _schema_at(schema: JsonObject, path: Path) -> JsonObject:
    """The schema of a part; empty where nothing is said of it."""
    for step in path:
        inside = _properties(schema).get(step) if isinstance(step, str) else schema.get("items")
        schema = cast(JsonObject, inside) if isinstance(inside, dict) else {}
    return schema


def _properties(schema: JsonObject) -> dict[str, JsonObject]:
    found = schema.get("properties")
    if not isinstance(found, dict):
        return {}
    return {name: inner for name, inner in found.items() if isinstance(inner, dict)}


def _strings(value: object) -> list[str]:
    return (
        [item for item in cast(list[object], value) if isinstance(item, str)]
        if isinstance(value, list)
        else []
    )
