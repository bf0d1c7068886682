"""Handles `set-cache-policy`."""

from pml_common.bus.errors import QueryFailed
from pml_common.contracts.capability import CapabilityRecord
from pml_common.contracts.registry import SetCachePolicy
from pml_registry.application.resolution import Resolution
from pml_registry.domain.caching import uncacheable
from pml_registry.domain.record_changes import not_theirs
from pml_registry.domain.visibility import Viewer
from pml_registry.ports import ToolStore


async def on_set_cache_policy(
    query: SetCachePolicy, resolution: Resolution, tools: ToolStore
) -> CapabilityRecord:
    """Store the policy and return the capability. Raises QueryFailed `not_found`, and `conflict`
    where another owns it, or a cached answer would skip effects."""
    viewer = Viewer(query.scope, query.principal, query.is_admin)
    meant = await resolution.resolve(viewer, query.reference)
    record = meant.record
    if meant.located.place != "project":
        raise QueryFailed("conflict", f"{record.fqdn} belongs to {record.scope}: fork it first")
    not_own = not_theirs(record.name, record.owner, viewer)
    if not_own is not None:
        raise QueryFailed("conflict", not_own)
    reason = uncacheable(record, query.cache, await tools.tools(query.scope, None))
    if reason is not None:
        raise QueryFailed("conflict", reason)
    await resolution.capabilities.set_cache(query.scope, record.record_id, query.cache)
    return (await resolution.resolve(viewer, query.reference)).record
