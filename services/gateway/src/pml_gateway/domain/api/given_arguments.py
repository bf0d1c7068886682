"""Arguments that a caller gives a capability, compared with the schema of its parameters."""

import json
from collections.abc import Mapping
from typing import Final

from pydantic import JsonValue

from pml_common.contracts.parameters import argument_faults, certain_of
from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.api.errors import InvalidRequest
from pml_gateway.domain.api.mcp_tools import did_you_mean

_MOST_DOUBTS: Final = 10
_LONGEST_SCHEMA: Final = 300


def require_fitting(name: str, schema: JsonObject, args: JsonObject) -> None:
    """Raise InvalidRequest, which names the field and its part of the schema, where a capability
    cannot work with these arguments: its author annotated others, or its program fails without
    others."""
    for fault in argument_faults(certain_of(schema), args):
        known = _object(schema.get("properties"))
        others = [each for each in args if each not in known]
        missing = fault.field.removeprefix("args.")
        meant = "".join(
            f" Is {each} meant for it?" for each in others if did_you_mean(each, [missing])
        )
        part = _part(fault.schema or _object(known.get(missing)))
        raise InvalidRequest(
            fault.field, f"{fault.reason}{meant} Nothing ran. {_takes(name, known)}{part}"
        )


def doubts(schema: JsonObject, args: JsonObject) -> tuple[str, ...]:
    """Return what speaks against arguments, ten things at most: unknown ones, and what is only
    inferred of the parameters, which a branch that is not taken may need alone."""
    known = _object(schema.get("properties"))
    found = [f"{fault.field} {fault.reason}" for fault in argument_faults(schema, args)]
    found += [
        f"args.{name} is no known parameter of the capability{did_you_mean(name, known)}"
        for name in args
        if known and name not in known
    ]
    return tuple(found[:_MOST_DOUBTS])


def missing_arguments(schema: JsonObject, args: JsonObject) -> tuple[str, ...]:
    """Return the names of required parameters that are not given, inferred ones too."""
    required = (*_names(schema), *_names(certain_of(schema)))
    return tuple(name for name in dict.fromkeys(required) if args.get(name) is None)


def _takes(name: str, known: Mapping[str, JsonValue]) -> str:
    shown = ", ".join(
        f"{each} ({kind})" if (kind := _object(schema).get("type")) else each
        for each, schema in known.items()
    )
    return f"{name} takes {shown}." if shown else ""


def _part(schema: JsonObject) -> str:
    """Show a field's part of the schema."""
    text = json.dumps(schema, ensure_ascii=False)
    shown = text if len(text) <= _LONGEST_SCHEMA else f"{text[:_LONGEST_SCHEMA]}…"
    return f" Its schema: {shown}" if schema else ""


def _object(value: JsonValue) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _names(schema: JsonObject) -> list[str]:
    required = schema.get("required")
    return (
        [each for each in required if isinstance(each, str)] if isinstance(required, list) else []
    )
