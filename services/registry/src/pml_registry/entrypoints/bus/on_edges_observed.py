"""A run showed relations between tools: count them."""

from collections.abc import Sequence

from pml_common.contracts import catalog
from pml_common.contracts.base import Message
from pml_common.contracts.learner import EdgesObserved
from pml_registry.domain.edges import OBSERVED_FROM, countable
from pml_registry.ports import ToolStore

_CONSUMER = catalog.REGISTRY_ON_EDGES_OBSERVED.durable


async def on_edges_observed(observed: EdgesObserved, tools: ToolStore) -> Sequence[Message]:
    """Add to the tool graph, once per run."""
    async with tools.once(observed.event_id, _CONSUMER) as handling:
        if handling.replayed is not None:
            return handling.replayed
        await handling.count_edges(observed.scope, countable(observed.edges), OBSERVED_FROM)
        return handling.conclude(())
