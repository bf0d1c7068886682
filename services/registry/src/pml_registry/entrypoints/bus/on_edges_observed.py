"""Handles `edges-observed`."""

from collections.abc import Sequence

from pml_common.bus.port import Handled
from pml_common.contracts import catalog
from pml_common.contracts.learner import EdgesObserved
from pml_registry.domain.tool_catalog import OBSERVED_FROM, shown_edges
from pml_registry.ports import ToolStore

_CONSUMER = catalog.REGISTRY_ON_EDGES_OBSERVED.durable


async def on_edges_observed(observed: Sequence[EdgesObserved], tools: ToolStore) -> Handled:
    """Count edges in the tool graph, those of each message once."""
    if shown := shown_edges(observed):
        await tools.count_edges(shown, _CONSUMER, OBSERVED_FROM)
    return Handled()
