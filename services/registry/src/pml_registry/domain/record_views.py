"""Views of stored records for callers and for discovery."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID

from pml_analysis.typing.call_lines import capability_call_line, tool_call_line
from pml_analysis.typing.declarations import (
    capability_signature,
    result_type,
    tool_signature,
)
from pml_common.contracts.callable_names import callable_name
from pml_common.contracts.capability import CapabilityDescription, CapabilityRecord, Health, Usage
from pml_common.contracts.display_names import mcp_name_of
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


def total_usage(usages: Collection[Usage]) -> Usage:
    """Add up the use of a record's behaviours; the mean is over the judged runs. What is learned of
    one has no sum."""
    judged = sum(usage.judged for usage in usages)
    weighed = sum(usage.judged * usage.mean_duration_ms for usage in usages)
    return Usage(
        counts="record",
        count=sum(usage.count for usage in usages),
        success_count=sum(usage.success_count for usage in usages),
        caller_faults=sum(usage.caller_faults for usage in usages),
        environment_faults=sum(usage.environment_faults for usage in usages),
        mean_duration_ms=weighed / (judged or 1),
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
    health: Health = "unproven"
    last_good: str | None = None


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
            yield _tool_hit(tools[each.id], each)
        if each.kind == "capability" and each.id in capabilities:
            yield _capability_hit(capabilities[each.id], each)


def _tool_hit(tool: ToolDefinition, ranked: Ranked) -> ToolHit:
    """A tool with its schemas and signature."""
    return ToolHit(
        id=tool.tool_id,
        name=tool.name,
        score=ranked.score,
        from_use=ranked.from_use,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        call=tool_call_line(tool),
        signature=tool_signature(tool),
        result_type=result_type(tool),
    )


def _capability_hit(record: Presented, ranked: Ranked) -> CapabilityHit:
    """A capability with its parameters and signature."""
    schema = json.dumps(without_certain(record.parameters_schema))
    call, signature = _called(callable_name(record.name), schema)
    return CapabilityHit(
        id=record.capability_id,
        name=record.name,
        score=ranked.score,
        from_use=ranked.from_use,
        description=record.description,
        parameters_schema=without_certain(record.parameters_schema),
        tools_used=record.tools_used,
        usage=record.usage,
        health=record.health,
        last_good=record.last_good,
        call=call,
        mcp_tool=mcp_name_of(record.name),
        signature=signature,
        source_type=record.source.type,
        preview=preview_of(record.code),
    )


@lru_cache(maxsize=4096)
def _called(name: str, parameters_schema: str) -> tuple[str, str]:
    """Return the line of a call and the signature. Remembered: the same are found again and again,
    and building them takes a tenth of a ms."""
    schema = json.loads(parameters_schema)
    return capability_call_line(name, schema), capability_signature(name, schema)
