"""Events of a workflow."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

from pml_common.contracts.analyzer import AnalysisRejected, ExecutionAnalyzed
from pml_common.contracts.decision import Verdict
from pml_common.contracts.executor import WorkflowParked
from pml_common.contracts.gateway import DecidedThrough
from pml_gateway.domain.workflow.grant import Covers
from pml_gateway.domain.workflow.verdicts import NO_VERDICTS, Verdicts


@dataclass(frozen=True)
class Analyzed:
    """The program was analysed. `name_refused` says why it cannot have the wanted name;
    `repeatable_tools` may be called again if the outcome of a call is unknown, `read_only_tools`
    change nothing; `verdicts` are the gateway's own."""

    analysis: ExecutionAnalyzed
    at: datetime
    name_refused: str | None = None
    repeatable_tools: tuple[str, ...] = ()
    read_only_tools: tuple[str, ...] = ()
    verdicts: Verdicts = NO_VERDICTS


@dataclass(frozen=True)
class NotAnalyzed:
    """The analyzer rejected the program. `absent` says why servers that it names, by name, have
    listed no tools."""

    rejection: AnalysisRejected
    at: datetime
    absent: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class ToolVerdict:
    """The gateway's verdict on a call of a parked run with its real arguments, the reason, and the
    hash of the tool's definition as its server lists it."""

    verdict: Verdict
    reason: str
    definition_hash: str


@dataclass(frozen=True)
class Parked:
    """The run is parked at calls that a person must approve. `verdicts` are in the order of the
    calls, None for a tool that its server no longer lists."""

    message: WorkflowParked
    at: datetime
    verdicts: tuple[ToolVerdict | None, ...] = ()


@dataclass(frozen=True)
class Decided:
    """A person approved or denied; with `replan`, the agent is to send another program. `covers`
    is the extent of the approval of a parked run; `forbidden` says why the present policy denies
    it; `through` is the way of a decision that came without the approver's key."""

    approval_id: UUID
    outcome: Literal["approved", "denied"]
    by: str
    at: datetime
    reason: str | None = None
    replan: bool = False
    repeatable_tools: tuple[str, ...] = ()
    read_only_tools: tuple[str, ...] = ()
    covers: Covers = "calls"
    verdicts: Verdicts = NO_VERDICTS
    forbidden: str | None = None
    through: DecidedThrough | None = None


@dataclass(frozen=True)
class Cancelled:
    """Cancelled by its caller or another authorised principal."""

    by: str
    at: datetime
    reason: str | None = None
    repeatable_tools: tuple[str, ...] = ()
    read_only_tools: tuple[str, ...] = ()


@dataclass(frozen=True)
class JournalSeen:
    """A run's journal as the gateway read it: the `calls` in words, the `fault` that keeps it from
    being read completely, and the run's end (`succeeded`) if it has one."""

    calls: str
    fault: str | None = None
    succeeded: bool | None = None


@dataclass(frozen=True)
class GivenUp:
    """A message of the workflow was dead-lettered by the consumer of this durable name; its sender
    is authentic. `journal` is that of the current run."""

    consumer: str
    message_id: str
    reason: str
    at: datetime
    journal: JournalSeen | None = None


@dataclass(frozen=True)
class Due:
    """The workflow's deadline passed at `at` without the expected event. For `without_bus` of that
    time NATS was away, so that no event could arrive. `is_held`: the bus still holds the message on
    which the run began, or goes on, for an executor."""

    at: datetime
    repeatable_tools: tuple[str, ...] = ()
    without_bus: timedelta = timedelta(0)
    read_only_tools: tuple[str, ...] = ()
    is_held: bool = False


WorkflowEvent = Analyzed | NotAnalyzed | Parked | Decided | Cancelled | GivenUp | Due
