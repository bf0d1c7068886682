"""Handles `edges-observed`."""

import logging
from collections.abc import Sequence
from uuid import UUID

from pml_common.bus.errors import Retryable
from pml_common.bus.port import Handled
from pml_common.contracts import catalog
from pml_common.contracts.base import Message
from pml_common.contracts.learner import EdgesObserved
from pml_registry.application.graphs import graph_changed
from pml_registry.domain.dependencies import shown_calls, shown_cycle
from pml_registry.domain.tool_catalog import OBSERVED_FROM, shown_edges
from pml_registry.ports import ToolStore
from pml_registry.ports.graph import Counted, DependencyStore

log = logging.getLogger(__name__)

_CONSUMER = catalog.REGISTRY_ON_EDGES_OBSERVED.durable
_CALLS = f"{_CONSUMER}/calls"
"""Calls are remembered apart: a message's edges may be counted before its capabilities exist."""


async def on_edges_observed(
    observed: Sequence[EdgesObserved], tools: ToolStore, dependencies: DependencyStore
) -> Handled:
    """Count edges between tools and calls between capabilities, those of each message once.
    Messages that name a capability which does not exist yet fail as Retryable."""
    if shown := shown_edges(observed):
        await tools.count_edges(shown, _CONSUMER, OBSERVED_FROM)
    counted = Counted((), ())
    if calls := shown_calls(observed):
        counted = await dependencies.count_calls(calls, _CALLS)
        await _warn_of_cycles(counted, dependencies)
    last = {each.scope: each for each in observed if each.event_id not in counted.missing}
    facts: dict[UUID, Sequence[Message]] = {
        each.event_id: [graph_changed(scope, each.event_id)] for scope, each in last.items()
    }
    error = "a capability that was called, or its caller, does not exist yet"
    return Handled(facts, {each: Retryable(error) for each in counted.missing})


async def _warn_of_cycles(counted: Counted, dependencies: DependencyStore) -> None:
    for scope, caller, called in counted.made:
        if cycle := await dependencies.cycle(scope, caller, called):
            log.warning(
                "%s: capabilities call each other in a cycle: %s", scope, shown_cycle(cycle, {})
            )
