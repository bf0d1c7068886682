"""Runs that wait for a person at a call: one which only the run could tell (B7), or the first of
a layer (`layers`).

Marks in the journal tell when a run was parked and when it went on; what lies between is no time
of the run's.
"""

import json
from collections.abc import Sequence
from itertools import pairwise
from uuid import UUID

from pydantic import JsonValue

from pml_common.contracts import ids
from pml_common.contracts.executor import ParkMark, RunWorkflow, WantedCall, WorkflowParked
from pml_common.contracts.tool import JsonObject
from pml_common.contracts.trace import TraceEvent
from pml_executor.domain.finished import task_results
from pml_executor.domain.instrumented import Instrumented
from pml_executor.domain.journal import Call
from pml_executor.domain.nested_runs import nested_runs
from pml_executor.domain.protocol import CallMade

PREVIEW_LENGTH = 240
"""Characters of JSON (F3)."""
MOST_PREVIEWED = 20
"""Arguments that are shown; the hash covers all."""


class Parking(Exception):
    """The run can go on only once a person has agreed to `wanted`."""

    def __init__(self, wanted: WantedCall) -> None:
        super().__init__(wanted.tool)
        self.wanted = wanted


def allowed_alone(command: RunWorkflow, call: Call, made: CallMade) -> bool:
    """Whether a person has agreed to this very call. Raises Parking where one may be asked."""
    if command.grant.granted_as(call.tool, call.args) is not None:
        return True
    definition_hash = command.askable.get(call.tool)
    if definition_hash is None:
        return False
    line, column = _place(command, made)
    raise Parking(
        WantedCall(
            node_id=call.node_id,
            occurrence=call.occurrence,
            tool=call.tool,
            definition_hash=definition_hash,
            args_hash=call.args_hash,
            preview=preview(call.args),
            line=line,
            column=column,
        )
    )


def _place(command: RunWorkflow, made: CallMade) -> tuple[int, int] | tuple[None, None]:
    """The author's line and column; a call in a capability has none in the program."""
    if made.line is None or made.column is None or made.module is not None:
        return None, None
    program = Instrumented.of(command)
    return program.place(program.offset(made.line, made.column))


def preview(args: JsonObject) -> JsonObject:
    """Arguments as a person is shown them: what is long is cut, and is text then."""
    return {name[:PREVIEW_LENGTH]: _cut(args[name]) for name in list(args)[:MOST_PREVIEWED]}


def _cut(value: JsonValue) -> JsonValue:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return value if len(text) <= PREVIEW_LENGTH else text[: PREVIEW_LENGTH - 1] + "…"


def parked_under(command_id: UUID, marks: Sequence[ParkMark]) -> WantedCall | None:
    """The call at which this command's run was parked; None where it was not. The command may have
    gone on from an earlier one before."""
    own = (mark for mark in reversed(marks) if mark.command_id == command_id)
    last = next(own, None)
    return last.wanted if last else None


def is_parked(marks: Sequence[ParkMark]) -> bool:
    """Whether the run waits for a person."""
    return bool(marks) and marks[-1].wanted is not None


def parked_ms(marks: Sequence[ParkMark]) -> float:
    """For how many milliseconds the run was parked, up to when it went on last."""
    return sum(
        max(0.0, went_on.ts - parked.ts)
        for parked, went_on in pairwise(marks)
        if parked.wanted is not None
    )


def workflow_parked(
    command: RunWorkflow,
    wanted: WantedCall,
    entries: Sequence[TraceEvent],
    sequence: int | None = None,
) -> WorkflowParked:
    """The fact that a run waits; stated again, it is the same. `sequence` is that of the journal's
    last append."""
    return WorkflowParked(
        event_id=ids.effect_id(command.command_id, "workflow-parked"),
        scope=command.scope,
        workflow_id=command.workflow_id,
        command_id=command.command_id,
        wanted=wanted,
        grant=command.grant,
        task_results=task_results(entries),
        nested=nested_runs(command, entries),
        journal_sequence=sequence,
    )
