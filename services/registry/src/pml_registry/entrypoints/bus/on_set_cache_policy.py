"""Shall results of a capability be cached?"""

from pml_common.bus.errors import QueryFailed
from pml_common.contracts.capability import CapabilityRecord
from pml_common.contracts.registry import ResolveCapability, SetCachePolicy
from pml_registry.domain.caching import uncacheable
from pml_registry.entrypoints.bus.on_resolve_capability import on_resolve_capability
from pml_registry.ports import CapabilityStore, ToolStore


async def on_set_cache_policy(
    query: SetCachePolicy, capabilities: CapabilityStore, tools: ToolStore
) -> CapabilityRecord:
    """Keep the choice; the capability as it is then. Raises QueryFailed `not_found`, and
    `conflict` where the answer from a cache would leave something out."""
    asked = ResolveCapability(scope=query.scope, reference=query.reference)
    record = await on_resolve_capability(asked, capabilities)
    why_not = uncacheable(record, query.cache, await tools.tools(query.scope, None))
    if why_not is not None:
        raise QueryFailed("conflict", why_not)
    await capabilities.set_cache(query.scope, record.capability_id, query.cache)
    return await on_resolve_capability(asked, capabilities)
