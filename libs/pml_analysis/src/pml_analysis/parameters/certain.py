"""Certain pass: what the caller's arguments must be, because the author annotated them so or the
program fails with any others. All else that a schema of parameters says is inferred from uses."""

from functools import cached_property

from pydantic import JsonValue

from pml_analysis.arguments.changes import Changed
from pml_analysis.arguments.roots import ARGUMENTS, RootedPart
from pml_analysis.names.origins import Origins
from pml_analysis.parameters.demands import Demands
from pml_analysis.parameters.shape_schemas import types_of
from pml_analysis.parameters.shapes import Shape, is_among
from pml_analysis.syntax.patterns import Path
from pml_common.contracts.tool import JsonObject


def certain_schema(arguments: Shape, demands: Demands, origins: Origins) -> JsonObject:
    """Return a schema that accepts every value that the program may work with as its author meant
    it; empty where nothing is certain."""
    return _Certain(demands, origins).of(arguments, ())


class _Certain:
    def __init__(self, demands: Demands, origins: Origins) -> None:
        self._demands = demands
        self._origins = origins

    @cached_property
    def _changed(self) -> Changed:
        """The parts that the program may change; read only where something is proven of one."""
        return Changed(self._origins)

    def _is_unchanged(self, path: Path) -> bool:
        return not self._changed.may_hold(RootedPart(ARGUMENTS, path))

    def of(self, shape: Shape, path: Path) -> JsonObject:
        """Return what is certain of a value; null is accepted where it may be missing."""
        found: JsonObject = {}
        types, demanded = set(shape.annotated), self._demands.types.get(path)
        is_open = shape.is_asked or shape.has_fallback
        if demanded and not is_open and self._is_unchanged(path):
            types |= demanded
        accepts_null = not self._is_required(shape, path)
        if path and len(types) == 1 and types_of(shape) in (types, set()):
            name = next(iter(types))
            found["type"] = [name, "null"] if accepts_null else name
        met = [*shape.defaults, *shape.compared]
        allowed = shape.allowed or []
        is_allowed = bool(allowed) and all(is_among(value, allowed) for value in met)
        if is_allowed and self._is_unchanged(path):
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
        return path in self._demands.present and self._is_unchanged(path)
