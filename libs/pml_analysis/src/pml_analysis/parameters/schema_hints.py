"""Schema hints pass: the schemas of the tool fields that parameters become."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from pml_analysis.decision.spreads import SPREAD
from pml_analysis.names.origins import Origins
from pml_analysis.names.values import FromArguments
from pml_analysis.parameters.shapes import Shape, ToolField
from pml_common.contracts.structure import (
    Argument,
    ArrayArgument,
    ObjectArgument,
    ParameterArgument,
    ReferenceArgument,
)
from pml_common.provides.json_schema import Described

_INDEX: Final = re.compile(r"\[\d+\]")


class SchemaHints:
    """Adds the schemas of tool fields to the shapes of the parameters that become them."""

    def __init__(self, arguments: Shape, origins: Origins) -> None:
        self._arguments = arguments
        self._end = len(origins.tree.source.text)
        self._roots = _roots(origins)
        self._named: dict[str, list[Shape]] = {}
        for name, shape in _named("", arguments):
            self._named.setdefault(name, []).append(shape)

    def add(self, inputs: Described, given: Mapping[str, Argument]) -> None:
        """Read one call's arguments; `inputs` are the inputs of its tool."""
        self._object(given, inputs)

    def _object(self, given: Mapping[str, Argument], value: Described) -> None:
        for key, argument in given.items():
            if not key.startswith(SPREAD):
                if key in value.properties:
                    self._value(argument, value.properties[key], required=key in value.required)
            elif self._is_all(argument):
                self._all(given, value)
            elif len(given) == 1:
                self._value(argument, value, required=bool(value.required))

    def _is_all(self, argument: Argument) -> bool:
        """Whether it is the arguments as a whole."""
        if isinstance(argument, ReferenceArgument):
            return argument.expression in self._roots
        return isinstance(argument, ParameterArgument) and argument.path == ()

    def _all(self, given: Mapping[str, Argument], value: Described) -> None:
        """Handle the arguments passed as a whole, less the fields written beside them."""
        for name, inner in value.properties.items():
            if name not in given:
                shape = self._arguments.at((name,), self._end)
                shape.tool_fields.append(ToolField(inner, name in value.required))

    def _value(self, argument: Argument, value: Described, *, required: bool) -> None:
        match argument:
            case ParameterArgument(parameter_name=name, path=path) if path != ():
                shapes = self._named.get(_INDEX.sub("[]", name), ())
                for shape in shapes if len(shapes) == 1 else ():
                    shape.tool_fields.append(ToolField(value, required))
            case ObjectArgument(fields=fields):
                self._object(fields, value)
            case ArrayArgument(items=items):
                for item in items:
                    self._value(item, value.items, required=True)
            case _:
                pass


def _roots(origins: Origins) -> frozenset[str]:
    """Return the names that always are the arguments as a whole."""
    free = {
        origins.tree.name(node)
        for node in origins.scopes.free
        if origins.of(node) == FromArguments()
    }
    return frozenset(free - {binding.name for binding in origins.scopes.bindings})


def _named(name: str, shape: Shape) -> Iterator[tuple[str, Shape]]:
    """Yield a value and its parts by their argument names: `user.name`, `rows[]`."""
    if name:
        yield name, shape
    for key, inner in shape.fields.items():
        yield from _named(f"{name}.{key}" if name else key, inner)
    if shape.items is not None:
        yield from _named(f"{name}[]", shape.items)
