"""Handles `list-traces`."""

from pml_common.bus.errors import QueryFailed
from pml_common.contracts.cursors import BadCursor
from pml_common.contracts.learner import ListTraces, TracePage
from pml_learner.ports import TraceStore


async def on_list_traces(query: ListTraces, traces: TraceStore) -> TracePage:
    """Return a page of the client's scope. Raises QueryFailed `invalid` for a foreign cursor."""
    try:
        return await traces.traces(query)
    except BadCursor as error:
        raise QueryFailed("invalid", str(error)) from error
