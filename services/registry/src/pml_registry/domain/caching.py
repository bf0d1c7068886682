"""Whether results of a capability may be cached (B11)."""

from collections.abc import Sequence

from pml_common.contracts.caching import CacheSettings
from pml_common.contracts.capability import CapabilityRecord
from pml_common.contracts.tool import ToolDefinition


def uncacheable(
    record: CapabilityRecord, cache: CacheSettings, catalogue: Sequence[ToolDefinition]
) -> str | None:
    """Why results must not be cached so, or None: an answer from the cache calls nothing, and so
    leaves out what a tool would change."""
    if cache.policy == "none" or cache.force:
        return None
    reading = {tool.tool_id for tool in catalogue if tool.annotations.read_only}
    others = [tool for tool in record.tools_used if tool not in reading]
    if not others:
        return None
    verb = "is" if len(others) == 1 else "are"
    return (
        f"{record.name} calls {', '.join(others)}, which {verb} not marked read-only: an answer "
        "from the cache would leave out what that changes; cache it all the same with force"
    )
