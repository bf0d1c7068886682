"""Results of a run derived from its journal; every executor derives the same."""

from collections.abc import Sequence
from typing import Final

from pml_common.calls_made import calls_made
from pml_common.contracts import ids
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.executor import CancelRun, RunFinished, RunWorkflow
from pml_common.contracts.trace import (
    CapabilityEnd,
    TaskResult,
    ToolEnd,
    ToolStart,
    TraceEvent,
)
from pml_executor.domain.endings import Ending
from pml_executor.domain.executed_path import executed_path
from pml_executor.domain.logs import last_lines
from pml_executor.domain.nested_runs import by_trace, decisions, nested_runs

MOST_NOTICES: Final = 25
"""The program's own come first: one result has 22 at most."""


def finished(command: RunWorkflow, entries: Sequence[TraceEvent]) -> RunFinished:
    """Build the event that ends a run. `entries` are a whole journal: its first and last entries
    are the start and the end of the outermost capability. The event itself has no entries yet."""
    start, end = entries[0], entries[-1]
    if not isinstance(end, CapabilityEnd):
        raise ValueError(f"the journal of {command.workflow_id} is not closed")
    logs, omitted = last_lines(entries)
    own = by_trace(entries).get(end.trace_id, [])
    return RunFinished(
        event_id=ids.effect_id(command.workflow_id, "run-finished"),
        scope=command.scope,
        workflow_id=command.workflow_id,
        principal=command.principal,
        capability=command.capability,
        intent=command.intent,
        called_as=command.called_as,
        discovery_id=command.discovery_id,
        success=end.success,
        result=end.result,
        error=end.error,
        executed_path=executed_path(own),
        decisions=decisions(own),
        task_results=task_results(entries),
        nested=nested_runs(command, entries),
        dry_run=command.grant.dry_run,
        trace_id=end.trace_id,
        started_at=start.ts,
        duration_ms=end.duration_ms,
        logs=logs,
        logs_omitted=omitted,
        notices=notices(entries),
        void=end.void,
    )


def notices(entries: Sequence[TraceEvent]) -> tuple[str, ...]:
    """Return what the journal says that results lost, each once, as far as an answer has room."""
    ends = [entry for entry in reversed(entries) if isinstance(entry, CapabilityEnd)]
    said = list(dict.fromkeys(notice for end in ends for notice in end.notices))
    others = len(said) - MOST_NOTICES
    more = [f"{others} other parts of results were lost, too"] if others > 0 else []
    return (*said[:MOST_NOTICES], *more)


def without_results(entries: Sequence[TraceEvent]) -> tuple[TraceEvent, ...]:
    """Return the entries that a run's end carries: their results are in the end itself, and what
    these lost."""
    return tuple(map(_without_result, entries))


def _without_result(entry: TraceEvent) -> TraceEvent:
    match entry:
        case ToolEnd():
            return entry.model_copy(update={"result": None})
        case CapabilityEnd():
            return entry.model_copy(update={"result": None, "notices": ()})
        case _:
            return entry


def task_results(entries: Sequence[TraceEvent]) -> tuple[TaskResult, ...]:
    """Return one result per started call, in order of the starts."""
    ends = {entry.trace_id: entry for entry in entries if isinstance(entry, ToolEnd)}
    last = entries[-1].ts if entries else 0.0
    return tuple(
        _task_result(entry, ends.get(entry.trace_id), last)
        for entry in entries
        if isinstance(entry, ToolStart)
    )


def cancelled(command: CancelRun, entries: Sequence[TraceEvent]) -> Ending:
    """Build the ending of a cancelled run: an error with the reason, the calls made, and those of
    unknown outcome."""
    message = f"{command.why}. {calls_made(task_results(entries))}"
    return Ending(error=WorkflowError(kind="cancelled", message=message))


def _task_result(start: ToolStart, end: ToolEnd | None, run_end: float) -> TaskResult:
    error = end.error if end is not None else _unknown(start)
    return TaskResult(
        node_id=start.node_id or "",
        occurrence=start.occurrence,
        tool=start.tool,
        args=start.args,
        success=end is not None and end.success,
        result=end.result if end is not None else None,
        error=error,
        trace_id=start.trace_id,
        parent_trace_id=start.parent_trace_id,
        started_at=start.ts,
        duration_ms=end.duration_ms if end is not None else max(0.0, run_end - start.ts),
        mocked=end is not None and end.mocked,
    )


def _unknown(start: ToolStart) -> WorkflowError:
    return WorkflowError(
        kind="outcome_unknown",
        message=f"the run ended before {start.tool} did; its outcome was not awaited",
        node_id=start.node_id,
        tool=start.tool,
    )
