"""The threshold of speculation in one scope: a fold over what became of speculated runs.

Each judged run moves the threshold by one step, up after a bad guess and down after a good one, so
that it settles where a share of `BAD_SHARE` of the guesses is bad. What the judgements of one
principal move is added up apart from all others and bounded, so that nobody moves it further,
whatever others do.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from pydantic import Field

from pml_common.contracts.base import Contract
from pml_common.contracts.error import ErrorKind, WorkflowError
from pml_gateway.domain.workflow.workflow_state import State

STEP: Final = 0.01
BAD_SHARE: Final = 0.1
UP: Final = STEP * (1 - BAD_SHARE)
DOWN: Final = -STEP * BAD_SHARE
PER_HOUR: Final = 5
"""Judgements of one principal in one hour of the clock that count."""
PRINCIPAL_SHARE: Final = 0.6
"""Share of the span by which the judgements of one principal move the threshold at most."""
MOST_PER_HOUR: Final = PER_HOUR
"""Runs, and opinions, of one principal that are stored of one hour."""
MOST_READ: Final = 5_000
KEPT_DAYS: Final = 14
KEPT: Final = timedelta(days=KEPT_DAYS)
"""Time for which a speculated run counts."""

_OWN_FAULTS: Final[frozenset[ErrorKind]] = frozenset(
    {"tool_error", "user_error", "memory_limit", "output_limit", "call_limit"}
)
"""Errors that speak against a guess, unless they say that they are another's fault. Those of the
caller (as `denied`, `cancelled`) and of the environment (as `timeout`, `outcome_unknown`) teach
nothing."""


@dataclass(frozen=True)
class Opinion:
    """Whether a principal found a run useful, and since when."""

    principal: str
    useful: bool
    at: datetime


@dataclass(frozen=True)
class SpeculatedRun:
    """A run of a guess: for whom, when, and its end, if any. `state` is that of its
    workflow, None for one that is not stored."""

    workflow_id: UUID
    principal: str
    at: datetime
    state: State | None = None
    error: WorkflowError | None = None
    opinions: tuple[Opinion, ...] = ()


class Judgement(NamedTuple):
    """Whether a guess was good, by a principal's opinion or by the end of the run that was made
    for the principal."""

    principal: str
    at: datetime
    good: bool


@dataclass(frozen=True)
class ThresholdRule:
    """The configured threshold, and how far the learned one may be from it; 0: it is fixed."""

    configured: float
    span: float

    @property
    def lowest(self) -> float:
        """The lowest threshold."""
        return max(0.0, self.configured - self.span)

    @property
    def highest(self) -> float:
        """The highest threshold."""
        return min(1.0, self.configured + self.span)


class Influence(NamedTuple):
    """The state of the fold of one principal: how far its judgements moved the threshold, and how
    many counted: in the current hour, as good, as bad, not at all."""

    moved: float = 0.0
    hour: datetime | None = None
    in_hour: int = 0
    good: int = 0
    bad: int = 0
    left_out: int = 0


class SpeculationThreshold(Contract):
    """The score from which speculation runs a capability in a scope, between `lowest` and
    `highest`. `good` and `bad` judgements of the last `days` moved it from the `configured` one;
    `left_out` are those beyond what counts of one principal in an hour."""

    threshold: float = Field(ge=0, le=1)
    configured: float = Field(ge=0, le=1)
    lowest: float = Field(ge=0, le=1)
    highest: float = Field(ge=0, le=1)
    fixed: bool = False
    good: int = Field(default=0, ge=0)
    bad: int = Field(default=0, ge=0)
    left_out: int = Field(default=0, ge=0)
    principals: int = Field(default=0, ge=0)
    days: int = KEPT_DAYS


def hour_of(at: datetime) -> datetime:
    """Return the beginning of its hour."""
    return at.replace(minute=0, second=0, microsecond=0)


def judgements_of(run: SpeculatedRun) -> Sequence[Judgement]:
    """Judge a run: by each opinion, and by its end unless the principal it was made for has an
    opinion."""
    given = [Judgement(each.principal, each.at, each.useful) for each in run.opinions]
    if any(each.principal == run.principal for each in given):
        return given
    if run.state == "succeeded":
        return [Judgement(run.principal, run.at, True), *given]
    if run.state == "failed" and _speaks_against(run.error):
        return [Judgement(run.principal, run.at, False), *given]
    return given


def _speaks_against(error: WorkflowError | None) -> bool:
    if error is None or error.fault in ("caller", "environment"):
        return False
    return error.kind in _OWN_FAULTS


def fold(before: Influence, judgement: Judgement, rule: ThresholdRule) -> Influence:
    """Learn from one judgement of a principal; beyond `PER_HOUR` in an hour nothing changes but the
    count of those left out."""
    moved, hour, in_hour, good, bad, left_out = before
    now = hour_of(judgement.at)
    if now != hour:
        in_hour = 0
    elif in_hour >= PER_HOUR:
        return Influence(moved, hour, in_hour, good, bad, left_out + 1)
    most = rule.span * PRINCIPAL_SHARE
    if judgement.good:
        return Influence(max(moved + DOWN, -most), now, in_hour + 1, good + 1, bad, left_out)
    return Influence(min(moved + UP, most), now, in_hour + 1, good, bad + 1, left_out)


def threshold_of(rule: ThresholdRule, runs: Iterable[SpeculatedRun]) -> SpeculationThreshold:
    """Return the threshold that follows from these runs, in any order."""
    told = [] if rule.span == 0 else [each for run in runs for each in judgements_of(run)]
    told.sort(key=lambda each: (each.at, each.good))
    by_principal = defaultdict[str, Influence](Influence)
    for each in told:
        by_principal[each.principal] = fold(by_principal[each.principal], each, rule)
    learned = by_principal.values()
    moved = math.fsum(each.moved for each in learned)
    threshold = min(max(rule.configured + moved, rule.lowest), rule.highest)
    return SpeculationThreshold(
        threshold=round(threshold, 4),
        configured=rule.configured,
        lowest=rule.lowest,
        highest=rule.highest,
        fixed=rule.span == 0,
        good=sum(each.good for each in learned),
        bad=sum(each.bad for each in learned),
        left_out=sum(each.left_out for each in learned),
        principals=len(learned),
    )
