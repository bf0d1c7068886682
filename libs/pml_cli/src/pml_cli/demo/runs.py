"""One run of the demo's program: requested, approved, awaited, inspected."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from pydantic import BaseModel, ValidationError
from rich.table import Table

from pml_cli.demo.narrator import DemoFailed, Narrator
from pml_cli.demo.session import Answer, Session
from pml_cli.markup import escape
from pml_cli.render.path import path_line
from pml_cli.render.values import milliseconds
from pml_common.contracts.fault_words import faults_of
from pml_common.contracts.trace import BranchDecision

Branch = Literal["written", "read"]


class Result(BaseModel):
    """The program's result."""

    did: Branch
    note: str
    text: str


@dataclass(frozen=True)
class Run:
    """A successful run; `how` names what was requested: code, or a capability."""

    how: str
    result: Result
    workflow_id: UUID
    capability_id: UUID
    path: tuple[str, ...]
    decisions: tuple[BranchDecision, ...]
    duration_ms: float


class Runner:
    """Runs programs through the gateway and prints what they did."""

    def __init__(self, session: Session, narrator: Narrator) -> None:
        self._session = session
        self._narrator = narrator

    def request(self, request: Mapping[str, object]) -> Answer:
        """Request a run that must need approval. Raises DemoFailed if it does not."""
        answer = self._session.execute(request)
        if answer.status != "approval_required" or answer.approval is None:
            raise DemoFailed(
                f"expected a request for approval, but the gateway answered {_describe(answer)}"
            )
        return answer

    def approve(self, asked: Answer, how: str, expected: Branch) -> Run:
        """Approve a run, wait for its end, and check which branch it took."""
        answer = self._session.approve(asked.workflow_id)
        if answer.status != "success":
            raise DemoFailed(f"the approved run should succeed, but ended with {_describe(answer)}")
        if answer.capability_id is None:
            raise DemoFailed("the gateway does not say which capability ran")
        state = self._session.workflow(asked.workflow_id)
        run = Run(
            how=how,
            result=_result(answer),
            workflow_id=asked.workflow_id,
            capability_id=answer.capability_id,
            path=state.executed_path,
            decisions=state.decisions,
            duration_ms=state.duration_ms or 0.0,
        )
        self._narrator.say(
            f"path  {path_line(run.path, run.decisions)}  [cyan]{milliseconds(run.duration_ms)}[/]"
        )
        fact = f"{run.result.note} was {expected}"
        self._narrator.check(run.result.did == expected, fact, f"it was {run.result.did}")
        return run


def runs_table(runs: Sequence[Run]) -> Table:
    """A table with one row per run."""
    table = Table("", "request", "note", "outcome", "path", "time", box=None)
    for number, run in enumerate(runs, 1):
        took = milliseconds(run.duration_ms)
        note, did = escape(run.result.note), run.result.did
        way = path_line(run.path, run.decisions)
        table.add_row(str(number), escape(run.how), note, did, way, took)
    return table


def _describe(answer: Answer) -> str:
    if answer.error is None:
        return answer.status
    tool = f" in {answer.error.tool}" if answer.error.tool else ""
    return f"{answer.status} ({answer.error.kind}{tool}): {answer.error.message}"


def _result(answer: Answer) -> Result:
    try:
        return Result.model_validate(answer.result)
    except ValidationError as error:
        raise DemoFailed(
            f"the program returned {answer.result!r}: {faults_of(error)[0]}"
        ) from error
