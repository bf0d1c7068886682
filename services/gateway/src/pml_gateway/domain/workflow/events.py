"""What can happen to a workflow."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

from pml_common.contracts.analyzer import AnalysisRejected, ExecutionAnalyzed
from pml_common.contracts.decision import Verdict
from pml_common.contracts.executor import RunFinished, WorkflowParked
from pml_gateway.domain.workflow.grant import Covers
from pml_gateway.domain.workflow.verdicts import NO_VERDICTS, Verdicts


@dataclass(frozen=True)
class Analyzed:
    """The program was understood. `name_holder` is another capability that has the wanted name;
    `repeatable_tools` may be called again when nobody knows how a call ended; `verdicts` are the
    gateway's own."""

    analysis: ExecutionAnalyzed
    at: datetime
    name_holder: UUID | None = None
    repeatable_tools: tuple[str, ...] = ()
    verdicts: Verdicts = NO_VERDICTS


@dataclass(frozen=True)
class NotAnalyzed:
    """The program cannot run. `absent` says why servers that it names have told no tools."""

    rejection: AnalysisRejected
    at: datetime
    absent: tuple[str, ...] = ()


@dataclass(frozen=True)
class Asked:
    """A tool that a parked run wants to call, as the gateway lists it: `verdict` and `reason` on
    the call with its real arguments, and the definition's hash."""

    verdict: Verdict
    reason: str
    definition_hash: str


@dataclass(frozen=True)
class Parked:
    """The run stands at calls that a person must agree to. `asked` are their tools in the order of
    the calls, None where a server lists none such any more."""

    fact: WorkflowParked
    at: datetime
    asked: tuple[Asked | None, ...] = ()


@dataclass(frozen=True)
class Decided:
    """A person agreed, or said no, to have it done otherwise (`replan`) or not at all. `covers`:
    what is agreed to at a parked run; `forbidden`: why the policy forbids it meanwhile."""

    approval_id: UUID
    outcome: Literal["approved", "denied"]
    by: str
    at: datetime
    reason: str | None = None
    replan: bool = False
    repeatable_tools: tuple[str, ...] = ()
    covers: Covers = "calls"
    verdicts: Verdicts = NO_VERDICTS
    forbidden: str | None = None


@dataclass(frozen=True)
class Cancelled:
    """Its caller, or somebody else who may, wants no more of it."""

    by: str
    at: datetime
    reason: str | None = None
    repeatable_tools: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunEnded:
    """The program ended."""

    run: RunFinished
    at: datetime


@dataclass(frozen=True)
class JournalSeen:
    """What the gateway itself reads in a run's journal: the `calls` in words, the `fault` that
    keeps it from being read as a whole, how the run ended (`succeeded`) if it says so."""

    calls: str
    fault: str | None = None
    succeeded: bool | None = None


@dataclass(frozen=True)
class GivenUp:
    """A message of the workflow that its sender published was given up for good by its consumer,
    the one of this durable name. `journal` is that of the run that goes on."""

    consumer: str
    message_id: str
    reason: str
    at: datetime
    journal: JournalSeen | None = None


@dataclass(frozen=True)
class Due:
    """What should have happened by `at` has not. For the time `without_bus` nobody could hear of
    it."""

    at: datetime
    repeatable_tools: tuple[str, ...] = ()
    without_bus: timedelta = timedelta(0)


WorkflowEvent = (
    Analyzed | NotAnalyzed | Parked | Decided | Cancelled | RunEnded | GivenUp | Due
)
