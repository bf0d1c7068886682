"""Replies to `discover`, `list-capabilities` and `resolve-capability`, with the dependencies of the
capabilities in them."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from pml_common.contracts.capability import CapabilityRecord
from pml_common.contracts.registry import (
    CapabilityHit,
    CapabilityPage,
    Discover,
    DiscoveryPage,
    ListCapabilities,
    ResolveCapability,
)
from pml_registry.domain.visibility import Viewer
from pml_registry.ports.graph import DependencyStore

_MOST_NEEDS: Final = 20
"""Dependencies of one hit."""


async def discover_related(
    query: Discover,
    discover: Callable[[Discover], Awaitable[DiscoveryPage]],
    dependencies: DependencyStore,
) -> DiscoveryPage:
    """Discover, and tell what each capability calls and needs."""
    page = await discover(query)
    found = [hit.id for hit in page.hits if isinstance(hit, CapabilityHit)]
    if not found:
        return page
    needs = await dependencies.needs(query.scope, found, _MOST_NEEDS)
    hits = [
        hit.model_copy(update={"dependencies": tuple(needs[hit.id])})
        if isinstance(hit, CapabilityHit)
        else hit
        for hit in page.hits
    ]
    return page.model_copy(update={"hits": tuple(hits)})


async def list_counted(
    query: ListCapabilities,
    listed: Callable[[ListCapabilities], Awaitable[CapabilityPage]],
    dependencies: DependencyStore,
) -> CapabilityPage:
    """List capabilities, with the number of each one's dependencies."""
    page = await listed(query)
    viewer = Viewer(query.scope, query.principal)
    records = await _counted(viewer, page.capabilities, dependencies)
    return page.model_copy(update={"capabilities": tuple(records)})


async def resolve_counted(
    query: ResolveCapability,
    resolve: Callable[[ResolveCapability], Awaitable[CapabilityRecord]],
    dependencies: DependencyStore,
) -> CapabilityRecord:
    """Resolve a capability, with the number of its dependencies where that is asked for."""
    record = await resolve(query)
    if not query.count_dependencies:
        return record
    viewer = Viewer(query.scope, query.principal)
    (counted,) = await _counted(viewer, [record], dependencies)
    return counted


async def _counted(
    viewer: Viewer, records: Sequence[CapabilityRecord], dependencies: DependencyStore
) -> Sequence[CapabilityRecord]:
    counts = await dependencies.counts(viewer, [each.capability_id for each in records])
    return [
        each.model_copy(update={"dependencies_count": counts[each.capability_id]})
        for each in records
    ]
