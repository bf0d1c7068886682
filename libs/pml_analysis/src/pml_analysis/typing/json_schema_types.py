"""JSON Schemas as TypeScript types. Schemas without a type, and invalid ones, stay open: a
declaration may say too little, never anything wrong."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote

from pydantic import JsonValue

from pml_analysis.typing.type_text import block, comment, key, literal, pascal, unique
from pml_common.contracts.tool import JsonObject

Members = tuple[str, ...]
"""The members of a union, each in the form that a union allows."""

_MAX_DEPTH: Final = 24
_MAX_TYPES: Final = 2_000
"""Types read of one schema; the rest stays open."""

_MAX_DEFAULT: Final = 40
_PLAIN: Final[Mapping[str, str]] = {
    "boolean": "boolean",
    "integer": "number",
    "null": "null",
    "number": "number",
    "string": "string",
}
_HINTS: Final[Mapping[str, str]] = {
    "additionalProperties": "object",
    "items": "array",
    "patternProperties": "object",
    "prefixItems": "array",
    "properties": "object",
    "required": "object",
}
"""The types that keywords imply in a schema without a type."""


@dataclass
class SchemaTypes:
    """The types of one schema. `given`: for arguments, which accept read-only lists and anything
    where the schema is silent; else for results, where silence is `any`.

    Types that the schema refers to by name are added to `definitions`; their names begin with
    `name` and `_`.
    """

    root: JsonValue
    name: str
    given: bool
    definitions: dict[str, str]
    _named: dict[str, str] = field(default_factory=dict[str, str])
    _unread: list[str] = field(default_factory=list[str])
    _left: int = _MAX_TYPES

    @property
    def open(self) -> Members:
        """The type of an unknown value."""
        return ("unknown",) if self.given else ("any",)

    def text(self) -> str:
        """Return the type of the whole schema."""
        found = _union(self._read(self.root, _Place()))
        while self._unread:
            pointer = self._unread.pop()
            body = self._read(_resolve(self.root, pointer), _Place(inlined=frozenset([pointer])))
            self.definitions[self._named[pointer]] = _union(body)
        return found

    def _read(self, schema: JsonValue, place: "_Place") -> Members:
        """Return the type of a part."""
        self._left -= 1
        if self._left < 0 or place.depth > _MAX_DEPTH:
            return self.open
        if schema is False:
            return ("never",)
        if not isinstance(schema, dict):
            return self.open
        found = self._refer(schema, place) if "$ref" in schema else self._combine(schema, place)
        return self._any_of([found, ("null",)]) if schema.get("nullable") is True else found

    def _refer(self, schema: JsonObject, place: "_Place") -> Members:
        pointer = schema["$ref"]
        if not isinstance(pointer, str) or pointer in place.inlined:
            return self.open
        target = _resolve(self.root, pointer)
        if target is None:
            return self.open
        if not place.inside:  # a name that refers only to itself is no type
            return self._read(target, place.inline(pointer))
        if pointer not in self._named:
            proposed = f"{self.name}_{pascal(pointer.rpartition('/')[2])}"
            self._named[pointer] = unique(proposed, self.definitions)
            self.definitions[self._named[pointer]] = ""
            self._unread.append(pointer)
        return (self._named[pointer],)

    def _combine(self, schema: JsonObject, place: "_Place") -> Members:
        """Return the intersection of all that a schema demands."""
        demands = [self._own(schema, place)]
        demands += [self._read(part, place.deeper()) for part in _list(schema, "allOf")]
        for way in ("anyOf", "oneOf"):
            parts = _list(schema, way)
            if parts:
                demands.append(self._any_of([self._read(part, place.deeper()) for part in parts]))
        said = list(dict.fromkeys(demand for demand in demands if demand != self.open))
        if len(said) > 1:
            return (f"({' & '.join(map(_operand, said))})",)
        return said[0] if said else self.open

    def _own(self, schema: JsonObject, place: "_Place") -> Members:
        """Return the schema's own type, without the schemas that it combines."""
        values = [schema["const"]] if "const" in schema else _list(schema, "enum")
        if values:
            self._left -= len(values)
            return self._any_of([self._value(value) for value in values])
        kinds = schema.get("type", next((_HINTS[hint] for hint in schema if hint in _HINTS), None))
        named = kinds if isinstance(kinds, list) and kinds else [kinds]
        return self._any_of([self._of_kind(kind, schema, place) for kind in named])

    def _value(self, value: JsonValue) -> Members:
        found = literal(value)
        return self.open if found is None else (found,)

    def _of_kind(self, kind: JsonValue, schema: JsonObject, place: "_Place") -> Members:
        if kind == "object":
            return self._object(schema, place.member())
        if kind == "array":
            return (self._array(schema, place.member()),)
        plain = _PLAIN.get(kind) if isinstance(kind, str) else None
        return self.open if plain is None else (plain,)

    def _object(self, schema: JsonObject, place: "_Place") -> Members:
        properties = _mapping(schema, "properties")
        required = [name for name in _list(schema, "required") if isinstance(name, str)]
        fields = {name: properties.get(name) for name in [*properties, *required]}
        members = [
            f"{_documented(known)}{key(name)}{'' if name in required else '?'}: "
            f"{_union(self._read(known, place))}"
            for name, known in fields.items()
        ]
        rest = self._rest(schema, place)
        if members:
            return (block([*members, "[key: string]: any"] if rest else members),)
        if rest:
            return (block([f"[key: string]: {_union(rest)}"]),)
        if any(name in schema for name in ("allOf", "anyOf", "oneOf")):
            return self.open  # the others define its contents
        closed = schema.get("properties") == {} or schema.get("additionalProperties") is False
        return (block([f"[key: string]: {'never' if closed else 'any'}"]),)

    def _rest(self, schema: JsonObject, place: "_Place") -> Members:
        """Return the type of members that are not named; nothing where there are none."""
        others = [*_mapping(schema, "patternProperties").values()]
        additional = schema.get("additionalProperties")
        if additional is True or isinstance(additional, dict):
            others.append(additional)
        found = [self._read(other, place) for other in others]
        return ("any",) if self.open in found else self._any_of(found) if found else ()

    def _array(self, schema: JsonObject, place: "_Place") -> str:
        items = schema.get("items", True)
        first = _list(schema, "prefixItems") or (items if isinstance(items, list) else [])
        mark = "readonly " if self.given else ""
        if not first:
            return f"{mark}{_operand(self._read(items, place))}[]"
        least = schema.get("minItems")
        sure = least if isinstance(least, int) else 0
        parts = [
            _operand(self._read(item, place)) + ("" if position < sure else "?")
            for position, item in enumerate(first)
        ]
        more = schema.get("additionalItems", True) if isinstance(items, list) else items
        most = schema.get("maxItems")
        if more is not False and not (isinstance(most, int) and most <= len(first)):
            parts.append(f"...{_operand(self._read(more, place))}[]")
        return f"{mark}[{', '.join(parts)}]"

    def _any_of(self, choices: list[Members]) -> Members:
        members = tuple(dict.fromkeys(member for choice in choices for member in choice))
        if self.open[0] in members:
            return self.open
        return tuple(member for member in members if member != "never") or ("never",)


@dataclass(frozen=True)
class _Place:
    """The position of a part: its depth, whether it is inside an object or a list, and the
    references followed to get there since."""

    depth: int = 0
    inside: bool = False
    inlined: frozenset[str] = frozenset()

    def deeper(self) -> "_Place":
        return _Place(self.depth + 1, self.inside, self.inlined)

    def member(self) -> "_Place":
        return _Place(self.depth + 1, inside=True)

    def inline(self, pointer: str) -> "_Place":
        return _Place(self.depth + 1, self.inside, self.inlined | {pointer})


def _resolve(root: JsonValue, pointer: str) -> JsonValue:
    """Return the part of a document that a local JSON pointer names; None where there is none."""
    start, *steps = unquote(pointer).split("/")
    if start != "#":
        return None
    found = root
    for step in (step.replace("~1", "/").replace("~0", "~") for step in steps):
        if isinstance(found, dict):
            found = found.get(step)
        elif isinstance(found, list) and step.isdecimal() and int(step) < len(found):
            found = found[int(step)]
        else:
            return None
    return found


def _documented(schema: JsonValue) -> str:
    if not isinstance(schema, dict):
        return ""
    description = schema.get("description")
    said = description if isinstance(description, str) else ""
    default = literal(schema.get("default"))
    if default not in (None, "null", "number") and len(default) <= _MAX_DEFAULT:
        said = f"{said} (default {default})".lstrip()
    return comment(said)


def _list(schema: JsonObject, name: str) -> list[JsonValue]:
    found = schema.get(name)
    return found if isinstance(found, list) else []


def _mapping(schema: JsonObject, name: str) -> JsonObject:
    found = schema.get(name)
    return found if isinstance(found, dict) else {}


def _operand(members: Members) -> str:
    """Parenthesise a type for use beside operators."""
    text = _union(members)
    return f"({text})" if len(members) > 1 or text.startswith(("readonly ", "-")) else text


def _union(members: Members) -> str:
    return " | ".join(members)
