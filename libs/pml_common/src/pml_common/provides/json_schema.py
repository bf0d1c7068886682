"""The parts of JSON Schema that matching one value with another needs."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Final

from pydantic import JsonValue

from pml_common.contracts.tool import JsonObject

Step = str | int | None
"""One step into a value: a key, an index, or any element."""

_DEEPEST: Final = 12
"""Most levels of nested schemas; references may be cyclic."""

_COMPARED: Final = 3
"""Levels that `fits` compares: a list, the objects in it, their fields."""

_TYPE_NAMES: Final[dict[type, str]] = {
    str: "string",
    bool: "boolean",
    int: "number",
    float: "number",
    list: "array",
    dict: "object",
}
_IMPLYING: Final = (("properties", "object"), ("items", "array"))


class Described:
    """A value as one schema of a document describes it."""

    def __init__(self, schema: JsonObject, document: "_Document", depth: int = 0) -> None:
        self.schema = document.behind_references(schema)
        """The schema from the document, with a reference at its top resolved."""

        self._document = document
        self._depth = depth

    @cached_property
    def types(self) -> frozenset[str]:
        """The possible JSON types, without null and with integers as numbers; empty: any."""
        own = self._declared or self._implied
        if own:
            return own
        for part in self._parts("allOf"):
            if part.types:
                return part.types
        alternatives = [one for one in self._parts("anyOf", "oneOf") if not one._is_null]
        known = all(one.types for one in alternatives)
        return _union(one.types for one in alternatives) if known else frozenset()

    @cached_property
    def properties(self) -> "dict[str, Described]":
        """Its fields, of all alternatives."""
        found: dict[str, Described] = {}
        for part in self._parts("anyOf", "oneOf", "allOf"):
            found.update(part.properties)
        own = self.schema.get("properties")
        for name, schema in own.items() if isinstance(own, dict) else ():
            found[name] = self._inside(schema)
        return found

    @cached_property
    def required(self) -> frozenset[str]:
        """The fields that are always present."""
        own = frozenset(_strings(self.schema.get("required")))
        return own | _union(part.required for part in self._parts("allOf"))

    @cached_property
    def items(self) -> "Described":
        """Its elements."""
        if "items" in self.schema:
            return self._inside(self.schema["items"])
        parts = self._parts("allOf", "anyOf", "oneOf")
        return next((part.items for part in parts if "array" in part.types), ANYTHING)

    def at(self, path: Iterable[Step]) -> "Described":
        """Return the part at `path`; ANYTHING if the schema does not describe it."""
        found = self
        for step in path:
            found = found.properties.get(step, ANYTHING) if isinstance(step, str) else found.items
        return found

    def meets(self, wanted: "Described") -> bool:
        """Return whether its types may overlap the wanted ones; unspecified types match any."""
        return not self.types or not wanted.types or bool(self.types & wanted.types)

    def fits(self, wanted: "Described", levels: int = _COMPARED) -> bool:
        """Return whether it is known to have every field that the wanted schema requires."""
        if not self.meets(wanted):
            return False
        if levels == 0:
            return True
        demanded = ((name, wanted.properties.get(name, ANYTHING)) for name in wanted.required)
        mine = self.properties
        if not all(name in mine and mine[name].fits(it, levels - 1) for name, it in demanded):
            return False
        return "array" not in wanted.types or self.items.fits(wanted.items, levels - 1)

    @property
    def _declared(self) -> frozenset[str]:
        declared = self.schema.get("type")
        names = [declared] if isinstance(declared, str) else _strings(declared)
        return frozenset("number" if name == "integer" else name for name in names) - {"null"}

    @property
    def _implied(self) -> frozenset[str]:
        schema = self.schema
        values = [schema["const"]] if "const" in schema else _list(schema.get("enum"))
        named = [_TYPE_NAMES[type(value)] for value in values if value is not None]
        return frozenset(named or [kind for key, kind in _IMPLYING if key in schema])

    @property
    def _is_null(self) -> bool:
        return self.schema.get("type") == "null"

    def _parts(self, *keywords: str) -> "Iterator[Described]":
        for keyword in keywords:
            for schema in _list(self.schema.get(keyword)):
                yield self._inside(schema)

    def _inside(self, schema: JsonValue) -> "Described":
        return self._document.describe(schema, self._depth + 1)


class _Document:
    """A schema with the definitions that its references point to."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._known: dict[tuple[int, int], Described] = {}

    def describe(self, schema: JsonValue, depth: int) -> Described:
        """Describe one of the document's schemas; cached by depth to bound the work."""
        if not isinstance(schema, dict) or depth > _DEEPEST:
            return ANYTHING
        key = (id(schema), depth)
        if key not in self._known:
            self._known[key] = Described(schema, self, depth)
        return self._known[key]

    def behind_references(self, schema: JsonObject) -> JsonObject:
        for _ in range(_DEEPEST):
            reference = schema.get("$ref")
            if not isinstance(reference, str):
                return schema
            schema = self._pointed(reference)
        return {}

    def _pointed(self, reference: str) -> JsonObject:
        """Return the target of `#/$defs/Name`; empty if missing or in another document."""
        start, *names = reference.split("/")
        found: JsonValue = self._root if start == "#" else None
        for name in names:
            name = name.replace("~1", "/").replace("~0", "~")
            found = found.get(name) if isinstance(found, dict) else None
        return found if isinstance(found, dict) else {}


def described(schema: JsonObject | None) -> Described:
    """Describe the value of a whole document; ANYTHING for None."""
    return _Document(schema).describe(schema, 0) if schema else ANYTHING


def _union(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset[str]().union(*sets)


def _list(value: JsonValue) -> Sequence[JsonValue]:
    return value if isinstance(value, list) else ()


def _strings(value: JsonValue) -> list[str]:
    return [item for item in _list(value) if isinstance(item, str)]


ANYTHING: Final = Described({}, _Document({}))
