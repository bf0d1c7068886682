"""Handles `find-trace`."""

from pml_common.bus.errors import QueryFailed
from pml_common.contracts.learner import ExecutionTrace, FindTrace
from pml_learner.ports import TraceStore


async def on_find_trace(query: FindTrace, traces: TraceStore) -> ExecutionTrace:
    """Return a trace of the client's scope. Raises QueryFailed `not_found`."""
    found = await traces.trace(query)
    if found is None:
        raise QueryFailed(
            "not_found",
            f"no trace {query.trace_id} in {query.scope}: it is older than traces are kept, was "
            "deleted, or is not stored yet",
        )
    return found
