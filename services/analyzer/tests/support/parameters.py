"""Short ways to write parameter schemas."""

from pml_common.contracts.parameters import without_certain
from pml_common.contracts.tool import JsonObject
from services.analyzer.tests.support.programs import analysed

TEXT: JsonObject = {"type": "string"}
NUMBER: JsonObject = {"type": "number"}
TRUTH: JsonObject = {"type": "boolean"}


def listed(items: JsonObject | None = None) -> JsonObject:
    """Build the schema of a list, of these if that is known."""
    return {"type": "array", "items": items} if items else {"type": "array"}


def fields(*required: str, **properties: JsonObject) -> JsonObject:
    """Build the schema of an object of these fields; nothing is known of those that are only
    required."""
    known: JsonObject = {**{name: {} for name in required}, **properties}
    needed: JsonObject = {"required": list(required)} if required else {}
    return {"type": "object", "properties": known, **needed}


Cases = dict[str, tuple[str, JsonObject, list[str]]]
"""Code, properties, required."""


def check(code: str, properties: JsonObject, required: list[str]) -> None:
    """Check that a program has these parameters and no others."""
    schema = without_certain(analysed(code).parameters_schema)
    assert schema == {"type": "object", "properties": properties, "required": required}
