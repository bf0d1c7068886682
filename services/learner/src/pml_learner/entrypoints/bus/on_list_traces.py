"""Handles `list-traces`."""

from pml_common.contracts.learner import ListTraces, TracePage
from pml_learner.ports import TraceStore


async def on_list_traces(query: ListTraces, traces: TraceStore) -> TracePage:
    """Return a page of the client's scope."""
    return await traces.traces(query)
