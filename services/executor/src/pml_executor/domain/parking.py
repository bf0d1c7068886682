"""Runs that wait for a person at calls that nobody approved before (B7), or at the first of a layer
(`layers`).

Marks in the journal tell when a run was parked and when it went on; what lies between is no time
of the run's.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from pml_common.contracts import ids
from pml_common.contracts.executor import ParkMark, RunWorkflow, WantedCall, WorkflowParked
from pml_common.contracts.trace import TraceEvent
from pml_executor.domain.finished import task_results
from pml_executor.domain.instrumented import Instrumented
from pml_executor.domain.journal import Call
from pml_executor.domain.nested_runs import nested_runs
from pml_executor.domain.protocol import CallMade

MOST_AT_ONCE = 1000
"""Calls that one question is about; what waits beyond them is asked about next."""


class Parking(Exception):
    """The run can go on only once a person has agreed to `wanted`, in the order of the calls."""

    def __init__(self, wanted: Sequence[WantedCall]) -> None:
        super().__init__(", ".join(sorted({call.tool for call in wanted})))
        self.wanted = most_at_once(wanted)


def most_at_once(wanted: Sequence[WantedCall]) -> tuple[WantedCall, ...]:
    """The calls of one question."""
    return tuple(wanted[:MOST_AT_ONCE])


def wanted_call(command: RunWorkflow, call: Call, made: CallMade, why: str) -> WantedCall:
    """A call that a person is asked about; `why` tells how it differs from what was approved."""
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
    """The author's line and column; a call in a capability has none in the program."""
    if made.line is None or made.column is None or made.module is not None:
        return None, None
    program = Instrumented.of(command)
    return program.place(program.offset(made.line, made.column))


def park_mark(command: RunWorkflow, wanted: Sequence[WantedCall], ts: float) -> ParkMark:
    """The journal's word that the run waits for these calls."""
    first, *beside = wanted
    return ParkMark(command_id=command.command_id, ts=ts, wanted=first, beside=tuple(beside))


def parked_under(command: RunWorkflow, marks: Sequence[ParkMark]) -> tuple[WantedCall, ...]:
    """The calls at which this command's run was parked; none where it was not. The command may
    have gone on from an earlier one before."""
    own = (mark for mark in reversed(marks) if mark.command_id == command.command_id)
    last = next(own, None)
    return () if last is None or last.wanted is None else (last.wanted, *last.beside)


def is_parked(marks: Sequence[ParkMark]) -> bool:
    """Whether the run waits for a person."""
    return bool(marks) and marks[-1].wanted is not None


def parked_ms(marks: Sequence[ParkMark]) -> float:
    """For how many milliseconds the run was parked, up to when it went on last."""
    return sum(end - start for start, end in parked_spans(marks))


def parked_spans(marks: Sequence[ParkMark]) -> Iterator[tuple[float, float]]:
    """From when to when the run was parked; Unix milliseconds, in order."""
    for parked, went_on in pairwise(marks):
        if parked.wanted is not None:
            yield parked.ts, max(parked.ts, went_on.ts)


def workflow_parked(
    command: RunWorkflow,
    wanted: Sequence[WantedCall],
    entries: Sequence[TraceEvent],
    sequence: int | None = None,
) -> WorkflowParked:
    """The fact that a run waits; stated again, it is the same. `sequence` is that of the journal's
    last append."""
    first, *beside = wanted
    waiting = {(call.node_id, call.occurrence) for call in wanted}
    return WorkflowParked(
        event_id=ids.effect_id(command.command_id, "workflow-parked"),
        scope=command.scope,
        workflow_id=command.workflow_id,
        command_id=command.command_id,
        wanted=first,
        beside=tuple(beside),
        grant_digest=command.grant.digest(),
        task_results=tuple(
            done
            for done in task_results(entries)
            if (done.node_id, done.occurrence) not in waiting  # the gateway has not made them
        ),
        nested=nested_runs(command, entries),
        journal_sequence=sequence,
    )
