"""Handles `set-cache-policy`."""

from pml_common.bus.errors import QueryFailed
from pml_common.contracts.capability import CapabilityRecord
from pml_common.contracts.registry import ResolveCapability, SetCachePolicy
from pml_registry.domain.caching import uncacheable
from pml_registry.entrypoints.bus.on_resolve_capability import on_resolve_capability
from pml_registry.ports import CapabilityStore, ToolStore


async def on_set_cache_policy(
    query: SetCachePolicy, capabilities: CapabilityStore, tools: ToolStore
) -> CapabilityRecord:
    """Store the policy and return the capability. Raises QueryFailed `not_found`, and `conflict`
    where a cached answer would skip effects."""
    reference = ResolveCapability(scope=query.scope, reference=query.reference)
    record = await on_resolve_capability(reference, capabilities)
    reason = uncacheable(record, query.cache, await tools.tools(query.scope, None))
    if reason is not None:
        raise QueryFailed("conflict", reason)
    await capabilities.set_cache(query.scope, record.capability_id, query.cache)
    return await on_resolve_capability(reference, capabilities)
