"""Handler of `run-workflow`: runs a program, or takes over the run of another executor."""

from collections.abc import Sequence
from datetime import UTC, datetime

from pml_common.bus.errors import Retryable
from pml_common.calls_made import calls_made
from pml_common.contracts.base import Message
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.executor import ParkMark, RunWorkflow, WantedCall
from pml_executor.application.attempt import Attempt
from pml_executor.application.run_dependencies import RunDependencies
from pml_executor.application.run_measures import RunMeasures, measured_run, program_span
from pml_executor.application.time_limit import TimeIsUp, time_limit
from pml_executor.domain import events
from pml_executor.domain.deadline import effective_start
from pml_executor.domain.endings import Ending, ending_of, first_cause
from pml_executor.domain.finished import finished, task_results
from pml_executor.domain.journal import RunJournal
from pml_executor.domain.parking import (
    is_parked,
    parked_under,
    workflow_parked,
)
from pml_executor.domain.pool import process_owner
from pml_executor.domain.realms import suits_realm
from pml_executor.domain.refusal import refused_run, unsigned
from pml_executor.ports import (
    JournalStore,
    SandboxUnavailable,
)


async def on_run_workflow(
    command: RunWorkflow, deps: RunDependencies, *, redelivered: bool
) -> Sequence[Message]:
    """Run the program, or replay and finish it; its journal's last append is `run-finished` or
    `workflow-parked`. A run that has ended, or was parked under this same command, stays as it is.

    A command that begins a run and is not `redelivered` is taken to be the first attempt: its
    program starts at once. If it is not, the first append is refused.

    Raises Fenced when another executor has taken the run over and will finish it.
    """
    with measured_run(command) as measures:
        store = deps.open_journal(command)
        try:
            is_first = command.begins and not redelivered
            await _handle(command, deps, store, measures, is_first=is_first)
        finally:
            await store.close()
    return ()


async def _handle(
    command: RunWorkflow,
    deps: RunDependencies,
    store: JournalStore,
    measures: RunMeasures,
    *,
    is_first: bool,
) -> None:
    first = events.run_started(command, deps.now())
    journal = store.begin(first) if is_first else await store.open(first)
    if journal.closed or parked_under(command, journal.marks):
        return
    resumes = is_parked(journal.marks)
    if resumes:
        await store.resume(ParkMark(command_id=command.command_id, ts=deps.now()))
    if len(journal.entries) > 1:
        measures.replayed(len(journal.entries))
    begins = is_first or resumes
    ending = await _ending(command, deps, store, journal, measures, is_first=begins)
    measures.ended(ending)
    now = deps.now()
    if isinstance(ending, Ending):
        store.note(events.run_ended(command, ending, effective_start(journal), now))
        await store.finish(finished(command, journal.entries))
    else:
        await store.finish(workflow_parked(command, ending, journal.entries, now))


async def _ending(
    command: RunWorkflow,
    deps: RunDependencies,
    store: JournalStore,
    journal: RunJournal,
    measures: RunMeasures,
    *,
    is_first: bool,
) -> Ending | tuple[WantedCall, ...]:
    """Run the program and return the run's ending, or the calls at which it parks."""
    refused = refused_run(command, datetime.fromtimestamp(deps.now() / 1000, UTC))
    if refused is None and not deps.is_signed(command.grant):
        refused = unsigned()
    if refused is not None:
        return Ending(error=refused)
    time = deps.time_of(command, journal)

    async def attempt(*, realm: bool) -> Ending | tuple[WantedCall, ...] | None:
        async with deps.pool.lease(process_owner(command), realm=realm) as sandbox:
            tried = Attempt(command, deps, store, journal, sandbox, time, is_first=is_first)
            try:
                with program_span(command, realm=realm):
                    return await tried.run()
            finally:
                measures.kills += tried.killed

    try:
        async with time_limit(time):
            ending = await attempt(realm=suits_realm(command))
            if ending is None:
                ending = await attempt(realm=False)
            if ending is None:
                raise SandboxUnavailable("a process without realms gave the program one")
            return ending
    except TimeIsUp:
        done = calls_made(task_results(journal.entries))
        message = f"the run took longer than the {command.timeout_s:g} s it had. {done}"
        return Ending(error=WorkflowError(kind="timeout", message=message))
    except SandboxUnavailable as error:
        raise Retryable(str(error)) from error
    except ExceptionGroup as group:
        error = first_cause(group)
        if (ending := ending_of(error)) is None:
            raise error from None
        return ending
