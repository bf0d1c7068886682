"""Handles `add-dependency`, `remove-dependency` and `list-dependencies`."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from uuid import UUID

from pml_common.bus.errors import QueryFailed
from pml_common.contracts.capability import CapabilityRecord
from pml_common.contracts.cursors import BadCursor
from pml_common.contracts.dependencies import (
    AddDependency,
    AddedDependency,
    DependencyPage,
    ListDependencies,
    RemovedDependencies,
    RemoveDependency,
)
from pml_common.contracts.registry import ResolveCapability
from pml_registry.application.graphs import GraphChanges
from pml_registry.domain.dependencies import CyclicTemplate, NewDependency, shown_cycle
from pml_registry.ports.graph import DependencyStore

log = logging.getLogger(__name__)

Resolve = Callable[[ResolveCapability], Awaitable[CapabilityRecord]]
"""Resolves a reference. Raises QueryFailed."""

_OfPrincipal = AddDependency | RemoveDependency | ListDependencies


async def on_add_dependency(
    query: AddDependency,
    resolve: Resolve,
    dependencies: DependencyStore,
    changes: GraphChanges,
) -> AddedDependency:
    """Add a dependency. Raises QueryFailed: `not_found`, `invalid` for one of a capability on
    itself, `conflict` for a template that would close a cycle of templates."""
    one = await _of_scope(query, query.reference, resolve)
    other = await _of_scope(query, query.to, resolve)
    if one.capability_id == other.capability_id:
        raise QueryFailed("invalid", f"{one.name} cannot depend on itself")
    new = NewDependency(one.capability_id, other.capability_id, query.edge_type, query.edge_source)
    try:
        added = await dependencies.add(query.scope, new)
    except CyclicTemplate as error:
        cycle = shown_cycle(error.cycle, await _names(query, error.cycle, resolve))
        raise QueryFailed(
            "conflict",
            f"{one.name} → {other.name} ({query.edge_type}) would close a cycle of templates: "
            f"{cycle}; remove one of these, or add it as observed",
        ) from error
    if added.created:
        await changes.announce(query.scope)
    if not added.cycle:
        return AddedDependency(created=added.created, dependency=added.dependency)
    names = await _names(query, added.cycle, resolve)
    warning = f"it closes a cycle: {shown_cycle(added.cycle, names)}"
    log.warning("%s: %s → %s: %s", query.scope, one.name, other.name, warning)
    return AddedDependency(created=True, dependency=added.dependency, warning=warning)


async def on_remove_dependency(
    query: RemoveDependency,
    resolve: Resolve,
    dependencies: DependencyStore,
    changes: GraphChanges,
) -> RemovedDependencies:
    """Remove dependencies. Raises QueryFailed `not_found` where there is none."""
    one = await _of_scope(query, query.reference, resolve)
    other = await _of_scope(query, query.to, resolve)
    removed = await dependencies.remove(
        query.scope, one.capability_id, other.capability_id, query.edge_type
    )
    if not removed:
        of_type = f" of type {query.edge_type}" if query.edge_type else ""
        raise QueryFailed("not_found", f"{one.name} has no dependency{of_type} on {other.name}")
    await changes.announce(query.scope)
    return RemovedDependencies(removed=removed)


async def on_list_dependencies(
    query: ListDependencies, resolve: Resolve, dependencies: DependencyStore
) -> DependencyPage:
    """Return a page of the dependencies of a capability's latest version, or of the version whose
    id is given. Raises QueryFailed `not_found`, and `invalid` for a foreign cursor."""
    one = await _of_scope(query, query.reference, resolve)
    try:
        return await dependencies.page(query, one.capability_id)
    except BadCursor as error:
        raise QueryFailed("invalid", str(error)) from error


async def _of_scope(query: _OfPrincipal, reference: str, resolve: Resolve) -> CapabilityRecord:
    """Resolve a reference to a capability of the query's scope: dependencies do not leave it."""
    asked = ResolveCapability(scope=query.scope, reference=reference, principal=query.principal)
    record = await resolve(asked)
    if record.scope != query.scope:
        raise QueryFailed(
            "invalid",
            f"{reference} is of {record.scope}: dependencies are kept inside {query.scope}",
        )
    return record


async def _names(
    query: _OfPrincipal, cycle: Sequence[UUID], resolve: Resolve
) -> Mapping[UUID, str]:
    """Return the names that the principal may see."""
    names: dict[UUID, str] = {}
    for each in set(cycle):
        try:
            names[each] = (await _of_scope(query, str(each), resolve)).name
        except QueryFailed:
            names[each] = "(private)"
    return names
