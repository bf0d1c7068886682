"""What can happen to a workflow."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from pml_common.contracts.analyzer import AnalysisRejected, ExecutionAnalyzed
from pml_common.contracts.executor import RunFinished


@dataclass(frozen=True)
class Analyzed:
    """The program was understood. `name_holder` is another capability that has the wanted name;
    `repeatable_tools` may be called again when nobody knows how a call ended."""

    analysis: ExecutionAnalyzed
    at: datetime
    name_holder: UUID | None = None
    repeatable_tools: tuple[str, ...] = ()


@dataclass(frozen=True)
class NotAnalyzed:
    """The program cannot run."""

    rejection: AnalysisRejected
    at: datetime


@dataclass(frozen=True)
class Settled:
    """A person agreed, or said no."""

    approval_id: UUID
    outcome: Literal["approved", "denied"]
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
class Due:
    """What should have happened by `at` has not."""

    at: datetime
    repeatable_tools: tuple[str, ...] = ()


Happening = Analyzed | NotAnalyzed | Settled | RunEnded | Due
