"""Handler of `cancel-run`: ends a run in any state."""

from collections.abc import Sequence

from pml_common.bus.errors import Fenced, Retryable
from pml_common.contracts.base import Message
from pml_common.contracts.executor import CancelRun
from pml_executor.application.run_dependencies import RunDependencies
from pml_executor.domain import events
from pml_executor.domain.deadline import effective_start
from pml_executor.domain.finished import cancelled, finished


async def on_cancel_run(command: CancelRun, deps: RunDependencies) -> Sequence[Message]:
    """Close the journal with `run-finished`, which also stops an executor that has not received the
    command; a run that has ended stays as it is. Raises Retryable where another executor has
    appended to the journal meanwhile."""
    run, store = command.run, deps.open_journal(command.run)
    try:
        journal = await store.open(events.run_started(run, deps.now()))
        if not journal.closed:
            ending = cancelled(command, journal.entries)
            store.note(events.run_ended(run, ending, effective_start(journal), deps.now()))
            await store.finish(finished(run, journal.entries))
    except Fenced as error:
        raise Retryable(str(error)) from error
    finally:
        await store.close()
    return ()
