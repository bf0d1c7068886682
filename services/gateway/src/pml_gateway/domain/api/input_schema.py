"""JSON Schemas for the arguments of tools, generated from pydantic models."""

from collections.abc import Mapping
from typing import Any, cast

from pydantic import BaseModel, JsonValue
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema
from typing_extensions import override

from pml_common.contracts.tool import JsonObject

_REFERENCE = "#/$defs/"


def input_schema(model: type[BaseModel]) -> JsonObject:
    """Return the schema of a model's JSON form in one piece: clients need not resolve `$ref`, so
    the model may not contain itself. Descriptions come from its fields, not from docstrings."""
    schema: JsonObject = model.model_json_schema(schema_generator=_ArgumentsSchema)
    definitions = cast(Mapping[str, JsonObject], schema.pop("$defs", {}))
    return _inlined(schema, definitions)


class _ArgumentsSchema(GenerateJsonSchema):
    """An optional argument is left out rather than null; titles would only repeat the names."""

    @override
    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    @override
    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        described = super().default_schema(schema)
        if described.get("default", ...) is None:
            del described["default"]
        return described

    @override
    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    @override
    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        described = super().model_schema(schema)
        return {k: v for k, v in described.items() if k not in ("title", "description")}


def _inlined(schema: JsonObject, definitions: Mapping[str, JsonObject]) -> JsonObject:
    """Replace references by their definitions; drop `additionalProperties` that allow anything."""
    reference = schema.get("$ref")
    if isinstance(reference, str):
        others = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**definitions[reference.removeprefix(_REFERENCE)], **others}
    inlined = {key: _inlined_value(value, definitions) for key, value in schema.items()}
    if inlined.get("additionalProperties") == {}:
        del inlined["additionalProperties"]
    return inlined


def _inlined_value(value: JsonValue, definitions: Mapping[str, JsonObject]) -> JsonValue:
    match value:
        case dict():
            return _inlined(value, definitions)
        case list():
            return [_inlined_value(item, definitions) for item in value]
        case _:
            return value
