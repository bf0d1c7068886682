"""The schema of a program's parameters, and arguments that it does not accept."""

import json
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, cast

from pydantic import JsonValue

from pml_common.contracts.tool import JsonObject

CERTAIN: Final = "x-pml-certain"
"""Keyword of a schema of parameters, with a schema of its own: what the author annotated, and what
the program fails without. The rest of the schema is inferred from uses."""

_SHOWN: Final = 60
_DEEPEST: Final = 8
_KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    "array": (list,),
    "boolean": (bool,),
    "integer": (int,),
    "null": (type(None),),
    "number": (int, float),
    "object": (dict,),
    "string": (str,),
}


class ArgumentFault(NamedTuple):
    """A value that a schema does not accept: the field, the reason, which follows it, and the
    field's part of the schema."""

    field: str
    reason: str
    schema: JsonObject


def without_certain(schema: JsonObject) -> JsonObject:
    """Return a schema of parameters for readers who know no such keyword."""
    return {keyword: value for keyword, value in schema.items() if keyword != CERTAIN}


def certain_of(schema: JsonObject) -> JsonObject:
    """Return the part of a schema of parameters under CERTAIN; {} where nothing is certain."""
    return _object(schema.get(CERTAIN))


def needed_of(schema: JsonObject) -> JsonObject:
    """Return a schema of the arguments without which nobody may blame the program: what is certain,
    and what it reads without a way to do without it. Whatever else is inferred is left out."""
    return _merged(certain_of(schema), _required_of(schema))


def _required_of(schema: JsonObject) -> JsonObject:
    """Return what a schema says of presence alone."""
    if not schema:
        return {}
    parts: JsonObject = {
        "properties": {
            name: inner
            for name, each in _object(schema.get("properties")).items()
            if (inner := _required_of(_object(each)))
        },
        "required": [*_names(schema)],
        "items": _required_of(_object(schema.get("items"))),
    }
    return {keyword: part for keyword, part in parts.items() if part}


def _merged(schema: JsonObject, other: JsonObject) -> JsonObject:
    """Return a schema that refuses what either of two refuses; `other` says presence alone."""
    if not schema or not other:
        return schema or other
    known, added = _object(schema.get("properties")), _object(other.get("properties"))
    parts: JsonObject = {
        "properties": {
            name: _merged(_object(known.get(name)), _object(added.get(name)))
            for name in dict.fromkeys([*known, *added])
        },
        "required": [*dict.fromkeys([*_names(schema), *_names(other)])],
        "items": _merged(_object(schema.get("items")), _object(other.get("items"))),
    }
    return {**schema, **{keyword: part for keyword, part in parts.items() if part}}


def argument_faults(schema: JsonObject, args: JsonObject) -> Iterator[ArgumentFault]:
    """Yield the arguments that a schema does not accept; fields begin with `args`."""
    return _faults("args", schema, args, 0)


def _faults(
    field: str, schema: JsonObject, value: JsonValue, depth: int
) -> Iterator[ArgumentFault]:
    if depth > _DEEPEST:
        return
    types = schema.get("type")
    names = [types] if isinstance(types, str) else cast(list[str], types or [])
    allowed = schema.get("enum")
    if names and not any(_is_of(name, value) for name in names):
        wanted = " or ".join(name for name in names if name != "null")
        yield ArgumentFault(field, f"is {_shown(value)}, and must be {_an(wanted)}.", schema)
    elif isinstance(allowed, list) and not any(_is_same(value, each) for each in allowed):
        choice = ", ".join(json.dumps(each) for each in allowed if each is not None)
        yield ArgumentFault(field, f"is {_shown(value)}, and must be one of {choice}.", schema)
    elif isinstance(value, dict):
        yield from _faults_of_object(field, schema, value, depth)
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for index, item in enumerate(value):
            yield from _faults(f"{field}[{index}]", _object(schema["items"]), item, depth + 1)


def _faults_of_object(
    field: str, schema: JsonObject, value: JsonObject, depth: int
) -> Iterator[ArgumentFault]:
    known = _object(schema.get("properties"))
    for name in _names(schema):
        if value.get(name) is None:
            yield ArgumentFault(f"{field}.{name}", "is missing.", _object(known.get(name)))
    for name, inner in known.items():
        if value.get(name) is not None:
            yield from _faults(f"{field}.{name}", _object(inner), value[name], depth + 1)


def _is_of(name: str, value: JsonValue) -> bool:
    is_whole = isinstance(value, float) and value.is_integer()
    kinds = _KINDS.get(name)
    if kinds is None or (name == "integer" and is_whole):
        return True
    return (type(value) if value is not None else type(None)) in kinds


def _is_same(value: JsonValue, other: JsonValue) -> bool:
    return value == other and isinstance(value, bool) == isinstance(other, bool)


def _an(name: str) -> str:
    return f"an {name}" if name[:1] in "aeiou" else f"a {name}"


def _shown(value: JsonValue) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _object(value: JsonValue) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _names(schema: JsonObject) -> list[str]:
    required = schema.get("required")
    return (
        [each for each in required if isinstance(each, str)] if isinstance(required, list) else []
    )
