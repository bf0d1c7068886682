"""Measurements of workflows and their approvals, and the events of approvals on spans."""

from collections.abc import Callable, Sequence
from datetime import datetime

from opentelemetry import trace

from pml_common.telemetry import metrics, vocabulary
from pml_common.telemetry.instruments import Distribution
from pml_gateway.domain.workflow.workflow import Step, Workflow
from pml_gateway.domain.workflow.workflow_state import Approval

_workflows = Distribution(metrics.WORKFLOWS)
_approvals = Distribution(metrics.APPROVALS)


class MeasuredStep:
    """A step that remembers the workflow before and after it, until what it did is stored."""

    def __init__(self, step: Callable[[Workflow], Step]) -> None:
        self._step = step
        self._taken: tuple[Workflow, Workflow] | None = None

    def __call__(self, workflow: Workflow) -> Step:
        """Take the step."""
        step = self._step(workflow)
        self._taken = workflow, step[0]
        return step

    def stored(self) -> None:
        """Measure the step that was taken last, if any."""
        if self._taken is not None:
            measure_step(*self._taken)


def measure_step(before: Workflow | None, after: Workflow) -> None:
    """Measure what is different after a step: an end, a request for approval, a decision."""
    was, now = before.approval if before else None, after.approval
    if now is not None and (was is None or was.approval_id != now.approval_id):
        _tell("approval.requested", after, {})
    ended = after.finished_at is not None and (before is None or before.finished_at is None)
    if was is not None and was.outcome is None and after is not before:
        _measure_decision(was, after, ended=ended)
    if ended:
        measure_ends([after])


def measure_ends(workflows: Sequence[Workflow]) -> None:
    """Measure workflows that have ended."""
    for each in workflows:
        if each.finished_at is not None:
            error = each.run.error if each.run is not None else each.error
            outcome = "success" if each.state == "succeeded" else "internal"
            if each.state == "failed" and error is not None:
                outcome = error.kind
            _workflows.record(_seconds(each.requested.requested_at, each.finished_at), outcome)


def _measure_decision(was: Approval, after: Workflow, *, ended: bool) -> None:
    now = after.approval
    same = now is not None and now.approval_id == was.approval_id
    decision = now.outcome if same and now is not None else None
    if decision is None and not ended:
        return
    cancelled = ended and after.error is not None and after.error.kind == "cancelled"
    told_as = "withdrawn" if decision is None or cancelled else decision
    until = (now.decided_at if same and now is not None else None) or after.finished_at
    waited_s = 0.0 if until is None else _seconds(was.requested_at, until)
    _approvals.record(waited_s, told_as)
    told = {vocabulary.DECISION: told_as, vocabulary.WAITED_S: waited_s}
    _tell("approval.decided", after, told)


def _tell(name: str, workflow: Workflow, attributes: dict[str, str | float]) -> None:
    span = trace.get_current_span()
    if span.is_recording():
        span.add_event(name, {vocabulary.WORKFLOW_ID: str(workflow.workflow_id), **attributes})


def _seconds(begun: datetime, ended: datetime) -> float:
    return max(0.0, (ended - begun).total_seconds())
