"""Ends a run wherever it stands."""

from collections.abc import Sequence

from pml_common.bus.errors import Fenced, Retryable
from pml_common.contracts.base import Message
from pml_common.contracts.executor import CancelRun
from pml_executor.application.run_dependencies import RunDependencies
from pml_executor.domain import events
from pml_executor.domain.cancellation import cancelled
from pml_executor.domain.deadline import began
from pml_executor.domain.finished import finished


async def on_cancel_run(command: CancelRun, executor: RunDependencies) -> Sequence[Message]:
    """Close the journal, which also stops an executor that does not hear of it; a run that has
    ended states its end again. Raises Retryable where another executor was faster."""
    run, store = command.run, executor.open_journal(command.run)
    try:
        journal = await store.open(events.run_started(run, executor.now()))
        if not journal.closed:
            ending = cancelled(command, journal.entries)
            await store.append(events.run_ended(run, ending, began(journal), executor.now()))
    except Fenced as error:
        raise Retryable(str(error)) from error
    return [finished(run, journal.entries, store.sequence)]
