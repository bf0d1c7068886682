"""The fields of a result and of an input, indexed by name for matching."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from pml_common.contracts.tool import JsonObject
from pml_common.provides.json_schema import Described, described
from pml_common.provides.names import is_payload, normalised, steers, takes_payload

WHOLE: Final = "$"
"""The field name of a whole result."""

_DEEPEST: Final = 3
_MOST: Final = 256
"""Most fields of one result that are considered; outer ones first."""


@dataclass(frozen=True, slots=True)
class Output:
    """A field of a result. `of_many`: one in every element of a list."""

    path: str
    name: str
    value: Described
    of_many: bool = False

    @property
    def is_payload(self) -> bool:
        """Whether it holds the content of the result, by its name."""
        return self.path == WHOLE or (self.path == self.name and is_payload(self.name))


class Outputs:
    """The fields of a result, to a limited depth, outer ones first."""

    def __init__(self, schema: JsonObject) -> None:
        self.schema = schema
        self.by_name: dict[str, list[Output]] = {}
        """By normalised name."""
        self.payloads: list[Output] = []

        for field in islice(_outputs(described(schema)), _MOST):
            if field.path != WHOLE:
                self.by_name.setdefault(normalised(field.name), []).append(field)
            if field.is_payload:
                self.payloads.append(field)


class Inputs:
    """The fields of an input that may take part of a result, in the schema's order."""

    def __init__(self, schema: JsonObject) -> None:
        self.schema = schema
        whole = described(schema)
        self.required = whole.required
        self.fields = {n: value for n, value in whole.properties.items() if not steers(n)}
        self.names = {normalised(name) for name in self.fields}
        self.takes_payload = any(map(takes_payload, self.fields))


def _outputs(result: Described) -> Iterator[Output]:
    if not result.properties:
        yield Output(WHOLE, WHOLE, result)
    level = [Output("", "", result)]
    for _ in range(_DEEPEST):
        level = [inner for outer in level for inner in _inside(outer)]
        yield from level


def _inside(outer: Output) -> Iterator[Output]:
    """Yield the fields of an object; of a list, its elements' fields or the elements themselves."""
    value, path, of_many = outer.value, outer.path, outer.of_many
    if not value.properties and "array" in value.types:
        value, path, of_many = value.items, f"{path}[]", True
        if not value.properties and outer.name:
            yield Output(path, outer.name, value, of_many)
    for name, inner in value.properties.items():
        yield Output(f"{path}.{name}" if path else name, name, inner, of_many)
