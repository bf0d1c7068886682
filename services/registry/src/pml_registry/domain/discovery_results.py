"""What discovery tells of the things it found."""

from collections.abc import Iterator, Mapping, Sequence

from pml_common.contracts.capability import CapabilityRecord
from pml_common.contracts.registry import CapabilityHit, DiscoveryHit, ToolHit
from pml_common.contracts.tool import ToolDefinition
from pml_registry.domain.ranking import Ranked


def discovery_hits(
    ranked: Sequence[Ranked],
    tools: Mapping[str, ToolDefinition],
    capabilities: Mapping[str, CapabilityRecord],
) -> Sequence[DiscoveryHit]:
    """The ranked in full, by their ids, in their order; those in neither mapping are left out."""
    return list(_hits(ranked, tools, capabilities))


def _hits(
    ranked: Sequence[Ranked],
    tools: Mapping[str, ToolDefinition],
    capabilities: Mapping[str, CapabilityRecord],
) -> Iterator[DiscoveryHit]:
    for found in ranked:
        if found.kind == "tool" and found.id in tools:
            yield _tool_hit(tools[found.id], found.score)
        if found.kind == "capability" and found.id in capabilities:
            yield _capability_hit(capabilities[found.id], found.score)


def _tool_hit(tool: ToolDefinition, score: float) -> ToolHit:
    """A tool with its schemas."""
    return ToolHit(
        id=tool.tool_id,
        name=tool.name,
        score=score,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
    )


def _capability_hit(record: CapabilityRecord, score: float) -> CapabilityHit:
    """A capability with what calling it takes."""
    return CapabilityHit(
        id=record.capability_id,
        name=record.name,
        score=score,
        description=record.description,
        parameters_schema=record.parameters_schema,
        tools_used=record.tools_used,
        usage=record.usage,
    )
