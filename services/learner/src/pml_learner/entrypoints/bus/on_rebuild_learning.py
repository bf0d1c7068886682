"""Handles `rebuild-learning`."""

from pml_common.bus.errors import QueryFailed
from pml_common.bus.port import Bus
from pml_common.contracts.learner import RebuildLearning, RebuildProgress
from pml_learner.application.relearning import rebuild_some
from pml_learner.domain.temporal_difference import TdRule
from pml_learner.ports import TraceStore


async def on_rebuild_learning(
    query: RebuildLearning, bus: Bus, traces: TraceStore, rule: TdRule
) -> RebuildProgress:
    """Rebuild a bounded part; again it changes nothing. Raises QueryFailed `not_found`."""
    progress = await rebuild_some(bus, traces, query, rule)
    if progress is None:
        raise QueryFailed(
            "not_found",
            f"nothing was learned of capability {query.capability_id}: it has not run here",
        )
    return progress
