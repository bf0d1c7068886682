"""Parking: runs that wait for approval of calls that are not approved yet, or of a layer's
first call (`layers`).

Marks in the journal record when a run was parked and when it went on; the time between does not
count as the run's.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from pml_common.contracts import ids
from pml_common.contracts.executor import ParkMark, RunWorkflow, WantedCall, WorkflowParked
from pml_common.contracts.trace import TraceEvent
from pml_executor.domain.finished import task_results
from pml_executor.domain.instrumented import Instrumented
from pml_executor.domain.journal import Call
from pml_executor.domain.logs import last_lines
from pml_executor.domain.nested_runs import nested_runs
from pml_executor.domain.protocol import CallMade

MOST_AT_ONCE = 1000
"""Calls in one request for approval; further pending calls follow in the next one."""


class Parking(Exception):
    """The run must wait for approval of the calls `wanted`, which are in order."""

    def __init__(self, wanted: Sequence[WantedCall]) -> None:
        super().__init__(", ".join(sorted({call.tool for call in wanted})))
        self.wanted = most_at_once(wanted)


def most_at_once(wanted: Sequence[WantedCall]) -> tuple[WantedCall, ...]:
    """Return the calls of one request for approval."""
    return tuple(wanted[:MOST_AT_ONCE])


def wanted_call(command: RunWorkflow, call: Call, made: CallMade, why: str) -> WantedCall:
    """Build a call to be approved; `why` says how it differs from what was approved."""
    line, column = _place(command, made)
    return WantedCall(
        node_id=call.node_id,
        occurrence=call.occurrence,
        tool=call.tool,
        args_hash=call.args_hash,
        args=call.args,
        why=why,
        line=line,
        column=column,
    )


def _place(command: RunWorkflow, made: CallMade) -> tuple[int, int] | tuple[None, None]:
    """Return the author's line and column; None for a call in a capability, which has no position
    in the program."""
    if made.line is None or made.column is None or made.module is not None:
        return None, None
    program = Instrumented.of(command)
    return program.author_position(program.offset(made.line, made.column))


def parked_under(command: RunWorkflow, marks: Sequence[ParkMark]) -> tuple[WantedCall, ...]:
    """Return the calls at which the run was parked under this command; none if it was not. Earlier
    marks may belong to earlier commands."""
    own = (mark for mark in reversed(marks) if mark.command_id == command.command_id)
    last = next(own, None)
    return () if last is None or last.wanted is None else (last.wanted, *last.beside)


def is_parked(marks: Sequence[ParkMark]) -> bool:
    """Whether the run waits for approval."""
    return bool(marks) and marks[-1].wanted is not None


def parked_ms(marks: Sequence[ParkMark]) -> float:
    """Return the milliseconds for which the run was parked, until it last went on."""
    return sum(end - start for start, end in parked_spans(marks))


def parked_spans(marks: Sequence[ParkMark]) -> Iterator[tuple[float, float]]:
    """Yield start and end of each time in which the run was parked; Unix milliseconds, in order."""
    for parked, went_on in pairwise(marks):
        if parked.wanted is not None:
            yield parked.ts, max(parked.ts, went_on.ts)


def workflow_parked(
    command: RunWorkflow,
    wanted: Sequence[WantedCall],
    entries: Sequence[TraceEvent],
    ts: float,
) -> WorkflowParked:
    """Build the event that a run is parked since `ts`, without entries of its own yet; `entries`
    are its whole journal."""
    first, *beside = wanted
    waiting = {(call.node_id, call.occurrence) for call in wanted}
    logs, omitted = last_lines(entries)
    return WorkflowParked(
        event_id=ids.effect_id(command.command_id, "workflow-parked"),
        scope=command.scope,
        workflow_id=command.workflow_id,
        command_id=command.command_id,
        ts=ts,
        wanted=first,
        beside=tuple(beside),
        grant_digest=command.grant.digest(),
        task_results=tuple(
            done
            for done in task_results(entries)
            if (done.node_id, done.occurrence) not in waiting  # the gateway has not made them
        ),
        nested=nested_runs(command, entries),
        logs=logs,
        logs_omitted=omitted,
    )
