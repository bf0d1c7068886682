"""Builders of outcomes, and what they teach one after the other."""

from collections.abc import Iterable, Sequence

from pml_common.contracts.capability import DecisionStats, Learning, OutcomeStats, PathStats
from pml_common.contracts.error import Fault
from pml_common.contracts.trace import BranchDecision
from pml_learner.domain.outcome import CallEnd, Outcome
from pml_learner.domain.state import State, fold
from pml_learner.domain.temporal_difference import TdRule
from services.learner.tests.support.builders import READ

HOUR = 498_681
"""An hour of Unix time."""

OLD_LEARNING = Learning(
    paths=(PathStats(path=READ, count=2, success_rate=0.595, mean_duration_ms=12.0),),
    dominant_path=READ,
    decision_stats=(
        DecisionStats(node_id="d1", outcomes={"true": OutcomeStats(count=1, success_rate=0.45)}),
    ),
)
"""Values as they were stored before there were states."""


def outcome(
    path: tuple[str, ...] = ("n1",),
    *,
    success: bool = True,
    fault: Fault | None = None,
    duration_ms: float = 10.0,
    decisions: Sequence[BranchDecision] = (),
    calls: Sequence[CallEnd] = (),
    principal: str = "agent-7",
    hour: int = HOUR,
) -> Outcome:
    """Build the outcome of a run."""
    blamed: Fault | None = None if success else "capability"
    return Outcome(path, decisions, calls, success, fault or blamed, duration_ms, principal, hour)


def taught(outcomes: Iterable[Outcome], state: State | None = None) -> State:
    """Return what outcomes teach in this order."""
    learned = state or State()
    for each in outcomes:
        learned = fold(learned, each, TdRule())
    return learned
