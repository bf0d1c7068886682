"""Views of stored records for callers and for discovery."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID

from pml_analysis.typing.declarations import capability_signature, tool_signature
from pml_common.contracts.callable_names import callable_name
from pml_common.contracts.capability import CapabilityDescription, CapabilityRecord, Usage
from pml_common.contracts.parameters import without_certain
from pml_common.contracts.registry import CapabilityHit, DiscoveryHit, ToolHit
from pml_common.contracts.source import CapabilitySource
from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_registry.domain.previews import preview_of
from pml_registry.domain.ranking import Ranked


def description_of(record: CapabilityRecord) -> CapabilityDescription:
    """Select the fields that callers need."""
    return CapabilityDescription(
        capability_id=record.capability_id,
        name=record.name,
        aliases=record.aliases,
        code=record.code,
        code_hash=record.code_hash,
        description=record.description,
        parameters_schema=record.parameters_schema,
        verified=record.verified,
    )


@dataclass(frozen=True)
class Presented:
    """The fields of a stored capability that hits show."""

    capability_id: UUID
    name: str
    description: str
    parameters_schema: JsonObject
    tools_used: tuple[str, ...]
    usage: Usage
    source: CapabilitySource
    code: str


def presented(record: CapabilityRecord) -> Presented:
    """Select the fields that hits show."""
    return Presented(
        capability_id=record.capability_id,
        name=record.name,
        description=record.description,
        parameters_schema=record.parameters_schema,
        tools_used=record.tools_used,
        usage=record.usage,
        source=record.source,
        code=record.code,
    )


def discovery_hits(
    ranked: Sequence[Ranked],
    tools: Mapping[str, ToolDefinition],
    capabilities: Mapping[str, Presented],
) -> Sequence[DiscoveryHit]:
    """Build the hits in ranked order; ids in neither mapping are omitted."""
    return list(_hits(ranked, tools, capabilities))


def _hits(
    ranked: Sequence[Ranked],
    tools: Mapping[str, ToolDefinition],
    capabilities: Mapping[str, Presented],
) -> Iterator[DiscoveryHit]:
    for each in ranked:
        if each.kind == "tool" and each.id in tools:
            yield _tool_hit(tools[each.id], each.score)
        if each.kind == "capability" and each.id in capabilities:
            yield _capability_hit(capabilities[each.id], each.score)


def _tool_hit(tool: ToolDefinition, score: float) -> ToolHit:
    """A tool with its schemas and signature."""
    return ToolHit(
        id=tool.tool_id,
        name=tool.name,
        score=score,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        signature=tool_signature(tool),
    )


def _capability_hit(record: Presented, score: float) -> CapabilityHit:
    """A capability with its parameters and signature."""
    return CapabilityHit(
        id=record.capability_id,
        name=record.name,
        score=score,
        description=record.description,
        parameters_schema=without_certain(record.parameters_schema),
        tools_used=record.tools_used,
        usage=record.usage,
        signature=_signature(callable_name(record.name), json.dumps(record.parameters_schema)),
        source_type=record.source.type,
        preview=preview_of(record.code),
    )


@lru_cache(maxsize=4096)
def _signature(name: str, parameters_schema: str) -> str:
    """Remembered: the same are found again and again, and building one takes a tenth of a ms."""
    return capability_signature(name, json.loads(parameters_schema))
