"""Which runs were there?"""

from pml_common.contracts.learner import ListTraces, TracePage
from pml_learner.ports import TraceStore


async def on_list_traces(query: ListTraces, traces: TraceStore) -> TracePage:
    """One page of the client's own scope."""
    return await traces.traces(query)
