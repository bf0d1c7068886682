"""Shapes: the uses of a value, as constraints on it."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from pydantic import JsonValue

from pml_analysis.syntax.patterns import Path
from pml_common.provides.json_schema import Described


@dataclass(frozen=True, slots=True)
class ToolField:
    """A field of a tool's input that a value becomes; `required`: the tool needs it."""

    value: Described
    required: bool


@dataclass(slots=True)
class Shape:
    """A value that the caller passes, or a part of one; `offset` is its first use.

    `certain` are the types that some use demands, `likely` those that a use suggests; `is_asked`:
    the program tests its type. `indexed`: read by index, as lists and texts are.
    """

    offset: int
    certain: set[str] = field(default_factory=set[str])
    likely: set[str] = field(default_factory=set[str])
    is_asked: bool = False
    indexed: bool = False
    may_be_absent: bool = False
    needed: bool = False
    defaults: list[JsonValue] = field(default_factory=list[JsonValue])
    compared: list[JsonValue] = field(default_factory=list[JsonValue])
    allowed: list[JsonValue] | None = None
    """All the values with which the program does not fail."""

    tool_fields: list[ToolField] = field(default_factory=list[ToolField])
    fields: "dict[str, Shape]" = field(default_factory=lambda: {})
    items: "Shape | None" = None
    annotated: set[str] = field(default_factory=set[str])
    """The types that its author annotated it with."""

    is_annotated_present: bool = False
    """Whether its author annotated it as one that is always there."""

    has_fallback: bool = False
    """Whether something takes its place where it is missing."""

    @property
    def required(self) -> bool:
        """Whether it must be passed: not if it is only forwarded to optional arguments."""
        if self.may_be_absent or self.defaults:
            return False
        return self.needed or not self.tool_fields or any(one.required for one in self.tool_fields)

    def at(self, path: Path, offset: int) -> "Shape":
        """Return the shape of a part, met at this offset."""
        found = self
        for step in path:
            if isinstance(step, str):
                fields = found.fields
                if step not in fields:
                    fields[step] = Shape(offset)
                found = fields[step]
            else:
                found.indexed |= step is not None
                found.items = found = found.items or Shape(offset)
            found.offset = min(found.offset, offset)
        return found

    def has_default(self, value: JsonValue) -> None:
        """Record that it may be left out; `value` is the default, None where that is unknown."""
        self.may_be_absent = self.has_fallback = True
        if value is not None:
            self.certain.add(type_of(value))
            if not is_among(value, self.defaults):
                self.defaults.append(value)

    def is_compared(self, value: JsonValue) -> None:
        """Record a comparison with this value."""
        if value is None:
            self.may_be_absent = True
            return
        self.certain.add(type_of(value))
        if not isinstance(value, bool) and not is_among(value, self.compared):
            self.compared.append(value)

    def allow(self, values: Iterable[JsonValue]) -> None:
        """Record that all other values make the program fail."""
        self.allowed = []
        for value in values:
            if not is_among(value, self.allowed):
                self.allowed.append(value)


def type_of(value: JsonValue) -> str:
    """Return the JSON type of a value that is not null."""
    match value:
        case bool():
            return "boolean"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
        case _:
            return "number"


def is_among(value: JsonValue, values: Iterable[JsonValue]) -> bool:
    """Whether one is equal as JSON: true is not 1."""
    return any(type(one) is type(value) and one == value for one in values)
