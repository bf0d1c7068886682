"""Handles `edges-observed`."""

from collections.abc import Sequence

from pml_common.contracts import catalog
from pml_common.contracts.base import Message
from pml_common.contracts.learner import EdgesObserved
from pml_registry.domain.tool_catalog import OBSERVED_FROM, merged_edges
from pml_registry.ports import ToolStore

_CONSUMER = catalog.REGISTRY_ON_EDGES_OBSERVED.durable


async def on_edges_observed(observed: EdgesObserved, tools: ToolStore) -> Sequence[Message]:
    """Count a run's edges in the tool graph, once per run."""
    async with tools.once(observed.event_id, _CONSUMER) as transaction:
        if transaction.replayed is not None:
            return transaction.replayed
        await transaction.count_edges(observed.scope, merged_edges(observed.edges), OBSERVED_FROM)
        return transaction.conclude(())
