"""Handlers of `run-finished`: the workflow ends with its run."""

from collections.abc import Sequence

from pml_common.bus.port import Handled
from pml_common.contracts.executor import RunFinished
from pml_gateway.application.calls_under_way import CallsUnderWay
from pml_gateway.application.workflow_service import WorkflowService


async def on_run_finished(
    run: RunFinished, *, workflows: WorkflowService, calls: CallsUnderWay
) -> None:
    """Answer callers, and cancel the calls that the run still makes; the end is stored later."""
    calls.cancel_of(run)
    await workflows.hear_end(run)


async def on_runs_finished(runs: Sequence[RunFinished], *, workflows: WorkflowService) -> Handled:
    """Store the ends."""
    await workflows.end(runs)
    return Handled()
