"""Certain pass: what the caller's arguments must be, because the author annotated them so or the
program fails with any others. All else that a schema of parameters says is inferred from uses."""

from pydantic import JsonValue

from pml_analysis.arguments.changes import Changed
from pml_analysis.arguments.roots import ARGUMENTS, RootedPart
from pml_analysis.parameters.demands import Demands
from pml_analysis.parameters.shape_schemas import types_of
from pml_analysis.parameters.shapes import Shape, is_among
from pml_analysis.syntax.patterns import Path
from pml_common.contracts.tool import JsonObject


def certain_schema(arguments: Shape, demands: Demands, changed: Changed) -> JsonObject:
    """Return a schema that accepts every value that the program may work with as its author meant
    it; empty where nothing is certain."""
    return _Certain(demands, changed).of(arguments, ())


class _Certain:
    def __init__(self, demands: Demands, changed: Changed) -> None:
        self._demands = demands
        self._changed = changed

    def of(self, shape: Shape, path: Path) -> JsonObject:
        """Return what is certain of a value; null is accepted where it may be missing."""
        found: JsonObject = {}
        is_proven = not self._changed.may_hold(RootedPart(ARGUMENTS, path))
        types = set(shape.annotated)
        if is_proven and not shape.is_asked and not shape.has_fallback:
            types |= self._demands.types.get(path, set())
        accepts_null = not self._is_required(shape, path)
        if path and len(types) == 1 and types_of(shape) in (types, set()):
            name = next(iter(types))
            found["type"] = [name, "null"] if accepts_null else name
        met = [*shape.defaults, *shape.compared]
        allowed = shape.allowed
        if is_proven and allowed and all(is_among(value, allowed) for value in met):
            found["enum"] = [*allowed, None] if accepts_null else allowed
        return {**found, **self._parts(shape, path)}

    def _parts(self, shape: Shape, path: Path) -> JsonObject:
        ordered = sorted(shape.fields.items(), key=lambda item: item[1].offset)
        properties: JsonObject = {
            name: known for name, inner in ordered if (known := self.of(inner, (*path, name)))
        }
        required: list[JsonValue] = [
            name for name, inner in ordered if self._is_required(inner, (*path, name))
        ]
        items = self.of(shape.items, (*path, None)) if shape.items is not None else {}
        parts = {"properties": properties, "required": required, "items": items}
        return {keyword: part for keyword, part in parts.items() if part}

    def _is_required(self, shape: Shape, path: Path) -> bool:
        if shape.has_fallback or not path:
            return False
        if shape.is_annotated_present and not shape.may_be_absent:
            return True
        return path in self._demands.present and not self._changed.may_hold(
            RootedPart(ARGUMENTS, path)
        )
