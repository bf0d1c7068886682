"""Handles `capability-changed`."""

from collections.abc import Sequence
from uuid import UUID

from pml_common.bus.port import Handled
from pml_common.contracts.base import Message
from pml_common.contracts.dependencies import GraphChanged
from pml_common.contracts.registry import CapabilityChanged
from pml_registry.application.graphs import ScopeGraphs, graph_changed
from pml_registry.application.relations import Relations

_LISTING = ("listed", "named", "versioned")


async def on_capability_listed(
    changes: Sequence[CapabilityChanged], relations: Relations
) -> Handled:
    """Relate each newly listed capability to others; a redelivery relates no two again."""
    facts: dict[UUID, Sequence[Message]] = {}
    listed = {(each.scope, each.capability_id): each for each in changes if each.change in _LISTING}
    for each in listed.values():
        if await relations.infer(each.scope, each.capability_id):
            facts[each.event_id] = [graph_changed(each.scope, each.event_id)]
    return Handled(facts)


async def on_capability_changed(changed: CapabilityChanged, graphs: ScopeGraphs) -> None:
    """Drop the scope's graph, unless the statistics alone changed."""
    if changed.change != "learned":
        graphs.drop(changed.scope)


async def on_graph_changed(changed: GraphChanged, graphs: ScopeGraphs) -> None:
    """Drop the scope's graph."""
    graphs.drop(changed.scope)
