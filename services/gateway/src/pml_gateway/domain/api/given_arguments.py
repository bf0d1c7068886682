"""Arguments that a caller gives a capability, compared with the schema of its parameters."""

import json
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, cast

from pydantic import JsonValue

from pml_common.contracts.parameters import CERTAIN
from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.api.errors import InvalidRequest
from pml_gateway.domain.api.mcp_tools import did_you_mean

_MOST_DOUBTS: Final = 10
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


class Fault(NamedTuple):
    """A value that a schema does not accept: the field, and the reason, which follows it."""

    field: str
    reason: str


def require_certain(name: str, schema: JsonObject, args: JsonObject) -> None:
    """Raise InvalidRequest, which names the field, where a capability cannot work with these
    arguments: its author annotated others, or its program fails without others."""
    certain = _object(schema.get(CERTAIN))
    for fault in _faults("args", certain, args, 0):
        known = _object(schema.get("properties"))
        others = [each for each in args if each not in known]
        missing = fault.field.removeprefix("args.")
        meant = "".join(
            f" Is {each} meant for it?" for each in others if did_you_mean(each, [missing])
        )
        raise InvalidRequest(
            fault.field, f"{fault.reason}{meant} Nothing ran. {_takes(name, known)}"
        )


def doubts(schema: JsonObject, args: JsonObject) -> tuple[str, ...]:
    """Return what speaks against arguments, by what is only inferred of the parameters."""
    known = _object(schema.get("properties"))
    found = [f"{fault.field} {fault.reason}" for fault in _faults("args", schema, args, 0)]
    for name in args:
        if known and name not in known:
            similar = did_you_mean(name, known)
            found.append(f"args.{name} is no known parameter of the capability{similar}")
    return tuple(found[:_MOST_DOUBTS])


def missing_arguments(schema: JsonObject, args: JsonObject) -> tuple[str, ...]:
    """Return the names of required parameters that are not given, inferred ones too."""
    required = (*_names(schema), *_names(_object(schema.get(CERTAIN))))
    return tuple(name for name in dict.fromkeys(required) if args.get(name) is None)


def _takes(name: str, known: Mapping[str, JsonValue]) -> str:
    shown = ", ".join(
        f"{each} ({kind})" if (kind := _object(schema).get("type")) else each
        for each, schema in known.items()
    )
    return f"{name} takes {shown}." if shown else ""


def _faults(field: str, schema: JsonObject, value: JsonValue, depth: int) -> Iterator[Fault]:
    if depth > _DEEPEST:
        return
    types = schema.get("type")
    names = [types] if isinstance(types, str) else cast(list[str], types or [])
    allowed = schema.get("enum")
    if names and not any(_is_of(name, value) for name in names):
        wanted = " or ".join(name for name in names if name != "null")
        yield Fault(field, f"is {_shown(value)}, and must be {_an(wanted)}.")
    elif isinstance(allowed, list) and not any(_is_same(value, each) for each in allowed):
        choice = ", ".join(json.dumps(each) for each in allowed if each is not None)
        yield Fault(field, f"is {_shown(value)}, and must be one of {choice}.")
    elif isinstance(value, dict):
        yield from _faults_of_object(field, schema, value, depth)
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for index, item in enumerate(value):
            yield from _faults(f"{field}[{index}]", _object(schema["items"]), item, depth + 1)


def _faults_of_object(
    field: str, schema: JsonObject, value: JsonObject, depth: int
) -> Iterator[Fault]:
    required = _names(schema)
    for name in required:
        if value.get(name) is None:
            yield Fault(f"{field}.{name}", "is missing.")
    for name, inner in _object(schema.get("properties")).items():
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
