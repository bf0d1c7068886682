"""How a run ends that is cancelled."""

from collections.abc import Sequence

from pml_common.calls_made import calls_made
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.executor import CancelRun
from pml_common.contracts.trace import TraceEvent
from pml_executor.domain.endings import Ending
from pml_executor.domain.finished import task_results


def cancelled(command: CancelRun, entries: Sequence[TraceEvent]) -> Ending:
    """With an error that says why, what was done, and what nobody knows."""
    message = f"{command.why}. {calls_made(task_results(entries))}"
    return Ending(error=WorkflowError(kind="cancelled", message=message))
