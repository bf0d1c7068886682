"""Capabilities as typed functions: what they take, and what their programs return."""

from collections.abc import Mapping, Sequence
from typing import Final

from pml_analysis.result_schemas import result_schema
from pml_analysis.structure.calls import CAPABILITY_SERVER
from pml_common.contracts.capability import CapabilityDescription
from pml_common.contracts.tool import JsonObject, ToolDefinition

_LONGEST: Final = 4_096
"""Characters of a program whose result is looked for; that of a longer one may be anything."""


def typed_capabilities(
    described: Mapping[str, CapabilityDescription], tools: Sequence[ToolDefinition]
) -> dict[str, ToolDefinition]:
    """Return capabilities, by the names that a program calls them by, as typed tools."""
    return {
        reference: typed_capability(
            one.name, one.code, one.parameters_schema, tools, one.description
        )
        for reference, one in described.items()
    }


def typed_capability(
    name: str,
    code: str,
    parameters_schema: JsonObject,
    tools: Sequence[ToolDefinition],
    description: str = "",
) -> ToolDefinition:
    """Return a capability as a tool with the schema of its result, as far as its text shows it."""
    gives: JsonObject = {}
    if len(code) <= _LONGEST:
        gives = result_schema(code, tools=tools, parameters=parameters_schema)
    return ToolDefinition(
        server=CAPABILITY_SERVER,
        name=name,
        description=description,
        input_schema=parameters_schema,
        output_schema=gives or None,
    )
