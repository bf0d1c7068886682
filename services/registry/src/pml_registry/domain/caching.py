"""Rules on which capabilities' results may be cached."""

from collections.abc import Sequence

from pml_common.contracts.caching import CacheSettings
from pml_common.contracts.capability import CapabilityRecord
from pml_common.contracts.tool import ToolDefinition


def uncacheable(
    record: CapabilityRecord, cache: CacheSettings, tools: Sequence[ToolDefinition]
) -> str | None:
    """The reason why results must not be cached under these settings, or None: a cached answer
    calls no tool, so it skips the tools' effects."""
    if cache.policy == "none" or cache.force:
        return None
    reading = {tool.tool_id for tool in tools if tool.annotations.read_only}
    others = [tool for tool in record.tools_used if tool not in reading]
    if not others:
        return None
    verb = "is" if len(others) == 1 else "are"
    return (
        f"{record.name} calls {', '.join(others)}, which {verb} not marked read-only: a cached "
        "answer would skip its effects; set `force` to cache it nevertheless"
    )
