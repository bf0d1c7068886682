"""Handles `edges-observed`."""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from uuid import UUID

from pml_common.bus.errors import Retryable
from pml_common.bus.port import Handled
from pml_common.contracts import catalog
from pml_common.contracts.base import Message
from pml_common.contracts.learner import EdgesObserved
from pml_registry.application.graphs import graph_changed
from pml_registry.domain.dependencies import shown_cycle
from pml_registry.domain.edge_counts import shown_edges
from pml_registry.ports.graph import Counted, DependencyStore, EdgeStore

log = logging.getLogger(__name__)

_CONSUMER = catalog.REGISTRY_ON_EDGES_OBSERVED.durable


async def on_edges_observed(
    observed: Sequence[EdgesObserved],
    edges: EdgeStore,
    dependencies: DependencyStore,
    now: Callable[[], datetime],
) -> Handled:
    """Count the runs that showed edges, those of each message once. Messages that name a capability
    which does not exist yet fail as Retryable. The graph has changed where an edge is new or has
    another source; how often it was seen alone is read anew with time."""
    counted = Counted((), ())
    if shown := shown_edges(observed):
        counted = await edges.count(shown, _CONSUMER, now())
        await _warn_of_cycles(counted, dependencies)
    changed = frozenset(scope for scope, *_ in (*counted.made, *counted.turned))
    again = frozenset(each.scope for each in observed if each.event_id in counted.again)
    last = {
        each.scope: each
        for each in observed
        if each.scope in changed | again and each.event_id not in counted.missing
    }
    facts: dict[UUID, Sequence[Message]] = {
        each.event_id: [graph_changed(scope, each.event_id)] for scope, each in last.items()
    }
    error = "a capability that was called, or its caller, does not exist yet"
    return Handled(facts, {each: Retryable(error) for each in counted.missing})


async def _warn_of_cycles(counted: Counted, dependencies: DependencyStore) -> None:
    calls = [key for key in counted.made if key[3] == "contains" and ":" not in key[2]]
    for scope, caller, called, _ in calls:
        if cycle := await dependencies.cycle(scope, UUID(caller), UUID(called)):
            log.warning(
                "%s: capabilities call each other in a cycle: %s", scope, shown_cycle(cycle, {})
            )
