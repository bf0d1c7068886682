"""Attribution of failed runs: to the caller, the environment, or the capability."""

from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

from pml_common.contracts.error import ErrorKind, Fault, WorkflowError
from pml_common.contracts.executor import RunFinished

_BY_KIND: Final[Mapping[ErrorKind, Fault]] = {
    "denied": "caller",
    "cancelled": "caller",
    "outcome_unknown": "environment",
    "internal": "environment",
}
"""Kinds that say whose fault it was. A tool's time-out is an `outcome_unknown`, or a `tool_error`
whose `fault` says so."""


def fault_of_error(error: WorkflowError | None) -> Fault:
    """Return whose fault an error is, by itself."""
    if error is None:
        return "capability"
    return _BY_KIND.get(error.kind) or error.fault or "capability"


def faults_of(run: RunFinished) -> Mapping[UUID, Fault]:
    """Return whose fault each failure in a run is, by the trace of the program or the capability
    call that failed: each is judged by its own end. Those that succeeded are left out."""
    ends = [(run.trace_id, run.success, run.error)]
    ends += [(call.trace_id, call.success, call.error) for call in run.nested]
    inside = _failures_inside(run)
    return {
        trace_id: _fault(error, inside.get(trace_id, ()))
        for trace_id, success, error in ends
        if not success
    }


def _failures_inside(run: RunFinished) -> Mapping[UUID, Sequence[WorkflowError]]:
    """The errors of calls of tools and of capabilities, by the trace of their caller."""
    found: dict[UUID, list[WorkflowError]] = {}
    for made in (*run.task_results, *run.nested):
        if made.error is not None:
            found.setdefault(made.parent_trace_id or run.trace_id, []).append(made.error)
    return found


def _fault(error: WorkflowError | None, inside: Sequence[WorkflowError]) -> Fault:
    own = fault_of_error(error)
    if error is None or own != "capability":
        return own
    environment = [each for each in inside if fault_of_error(each) == "environment"]
    if error.kind == "timeout":  # while it waited for an answer that did not come
        waited = any(each.kind == "outcome_unknown" for each in environment)
        return "environment" if waited else own
    if error.kind == "user_error":  # caught, and thrown again in its own words
        repeated = any(each.message and each.message in error.message for each in environment)
        return "environment" if repeated else own
    return own
