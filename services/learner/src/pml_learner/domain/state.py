"""The state that a capability's traces are folded into, in the order of their storage."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, TypeVar

from pml_common.contracts.capability import (
    DecisionStats,
    Learning,
    NodeStats,
    OutcomeStats,
    PathStats,
    Usage,
)
from pml_learner.domain.outcome import Outcome, Path
from pml_learner.domain.temporal_difference import KEPT, Estimate, TdRule

DOMINANT_FROM: Final = 3
"""Runs that a path needs before it can be dominant."""

MAX_PATHS: Final = 100
MAX_PATH_NODES: Final = 20_000
MAX_OUTCOMES: Final = 300
MAX_NODES: Final = 200
"""Bounds of a capability's state, which every update carries: its paths, and their nodes in all;
outcomes of decisions; nodes with calls. Loops over data create ever more paths; what was met least
often is dropped, the oldest first, and never what is new."""

K = TypeVar("K")


class Cell(NamedTuple):
    """The success rate and the moving mean of durations of a path or a node."""

    estimate: Estimate = Estimate()
    mean_duration_ms: float = 0.0


class Counts(NamedTuple):
    """Numbers of runs; `streak` succeeded since the last that did not. The mean duration is that of
    the judged runs."""

    runs: int = 0
    successes: int = 0
    streak: int = 0
    caller_faults: int = 0
    environment_faults: int = 0
    mean_duration_ms: float = 0.0

    @property
    def judged(self) -> int:
        """The runs that succeeded or failed by the capability's own fault."""
        return self.runs - self.caller_faults - self.environment_faults


@dataclass(frozen=True)
class State:
    """Everything learned from a capability's traces, in the order in which it was met. `principals`
    are those with a voice of their own, by its index."""

    counts: Counts = field(default_factory=Counts)
    principals: tuple[str, ...] = ()
    overall: Estimate = field(default_factory=Estimate)
    paths: Mapping[Path, Cell] = field(default_factory=dict[Path, Cell])
    outcomes: Mapping[tuple[str, str], Estimate] = field(
        default_factory=dict[tuple[str, str], Estimate]
    )
    nodes: Mapping[str, Cell] = field(default_factory=dict[str, Cell])


def fold(state: State, outcome: Outcome, rule: TdRule) -> State:
    """Learn from one run; one that failed by the fault of others is counted, and teaches
    nothing."""
    counts = state.counts._replace(runs=state.counts.runs + 1)
    if outcome.fault == "caller":
        return replace(state, counts=counts._replace(caller_faults=counts.caller_faults + 1))
    if outcome.fault == "environment":
        more = counts.environment_faults + 1
        return replace(state, counts=counts._replace(environment_faults=more))
    principals, who = voiced(state.principals, outcome.principal)
    actual = [(outcome.success, 1)]
    return State(
        counts=_judged(counts, outcome),
        principals=principals,
        overall=state.overall.observed(who, outcome.hour, actual, rule),
        paths=_with_path(state.paths, outcome, who, rule),
        outcomes=_with_decisions(state.outcomes, outcome, who, rule),
        nodes=_with_calls(state.nodes, outcome, who, rule),
    )


def usage_of(state: State) -> Usage:
    """Return the counts as they are published."""
    counts, overall = state.counts, state.overall
    low, high = overall.interval() if overall.seen else (None, None)
    return Usage(
        count=counts.runs,
        success_count=counts.successes,
        success_streak=counts.streak,
        mean_duration_ms=counts.mean_duration_ms,
        caller_faults=counts.caller_faults,
        environment_faults=counts.environment_faults,
        value=overall.value if overall.seen else None,
        low=low,
        high=high,
    )


def learning_of(state: State) -> Learning:
    """Return what was learned as it is published."""
    decisions: dict[str, dict[str, OutcomeStats]] = {}
    for (node_id, outcome), estimate in state.outcomes.items():
        low, high = estimate.interval()
        decisions.setdefault(node_id, {})[outcome] = OutcomeStats(
            count=estimate.seen, success_rate=estimate.value, low=low, high=high
        )
    return Learning(
        paths=tuple(_path_stats(path, cell) for path, cell in state.paths.items()),
        dominant_path=dominant_path(state.paths),
        decision_stats=tuple(
            DecisionStats(node_id=node_id, outcomes=stats) for node_id, stats in decisions.items()
        ),
        node_stats=tuple(_node_stats(node_id, cell) for node_id, cell in state.nodes.items()),
    )


def path_stats(state: State, path: Path) -> PathStats | None:
    """Return the statistics of exactly this path."""
    cell = state.paths.get(path)
    return None if cell is None else _path_stats(path, cell)


def dominant_path(paths: Mapping[Path, Cell]) -> Path:
    """Return the path of highest success rate * runs, of those run often enough; else the first."""
    tried = [path for path, cell in paths.items() if cell.estimate.seen >= DOMINANT_FROM]
    if not tried:
        return next(iter(paths), ())
    return max(tried, key=lambda path: paths[path].estimate.value * paths[path].estimate.seen)


def voiced(principals: tuple[str, ...], principal: str) -> tuple[tuple[str, ...], int]:
    """Return the principals with a new one, while there is place, and the index of its voice."""
    if principal in principals:
        return principals, principals.index(principal)
    if len(principals) < KEPT:
        return (*principals, principal), len(principals)
    return principals, KEPT


def _judged(counts: Counts, outcome: Outcome) -> Counts:
    mean = counts.mean_duration_ms
    return counts._replace(
        successes=counts.successes + int(outcome.success),
        streak=counts.streak + 1 if outcome.success else 0,
        mean_duration_ms=mean + (outcome.duration_ms - mean) / counts.judged,
    )


def _with_path(
    paths: Mapping[Path, Cell], outcome: Outcome, who: int, rule: TdRule
) -> Mapping[Path, Cell]:
    cell = paths.get(outcome.path)
    duration_ms = outcome.duration_ms
    learned = Cell(
        (cell or Cell()).estimate.observed(who, outcome.hour, [(outcome.success, 1)], rule),
        rule.step(cell.mean_duration_ms, duration_ms) if cell else duration_ms,
    )
    kept = {**paths, outcome.path: learned}
    nodes = sum(len(path) for path in kept) if cell is None else 0
    while len(kept) > 1 and (len(kept) > MAX_PATHS or nodes > MAX_PATH_NODES):
        others = (path for path in kept if path != outcome.path)
        forgotten = min(others, key=lambda path: kept[path].estimate.seen)
        del kept[forgotten]
        nodes -= len(forgotten)
    return kept


def _with_decisions(
    known: Mapping[tuple[str, str], Estimate], outcome: Outcome, who: int, rule: TdRule
) -> Mapping[tuple[str, str], Estimate]:
    taken: dict[tuple[str, str], int] = {}
    for decision in outcome.decisions:
        key = decision.node_id, decision.outcome
        taken[key] = taken.get(key, 0) + decision.times
    learned = {
        key: known.get(key, Estimate()).observed(
            who, outcome.hour, [(outcome.success, times)], rule
        )
        for key, times in taken.items()
    }
    kept = {**known, **learned}
    return _bounded(kept, {key: each.seen for key, each in kept.items()}, learned, MAX_OUTCOMES)


def _with_calls(
    known: Mapping[str, Cell], outcome: Outcome, who: int, rule: TdRule
) -> Mapping[str, Cell]:
    ends: dict[str, list[tuple[bool, int]]] = {}
    means: dict[str, float] = {}
    for call in outcome.calls:
        node_id = call.node_id
        ends.setdefault(node_id, []).append((call.success, 1))
        before = known[node_id].mean_duration_ms if node_id in known else None
        mean = means.get(node_id, before)
        means[node_id] = call.duration_ms if mean is None else rule.step(mean, call.duration_ms)
    learned = {
        node_id: Cell(
            known.get(node_id, Cell()).estimate.observed(who, outcome.hour, actuals, rule),
            means[node_id],
        )
        for node_id, actuals in ends.items()
    }
    kept = {**known, **learned}
    counts = {node_id: cell.estimate.seen for node_id, cell in kept.items()}
    return _bounded(kept, counts, learned, MAX_NODES)


V = TypeVar("V")


def _bounded(
    kept: dict[K, V], counts: Mapping[K, int], new: Mapping[K, V], most: int
) -> Mapping[K, V]:
    """Drop those met least often, the oldest first, and of `new` only what would not fit alone."""
    if len(kept) <= most:
        return kept
    old_first = sorted(kept, key=lambda key: (key in new, counts[key]))
    for key in old_first[: len(kept) - most]:
        del kept[key]
    return kept


def _path_stats(path: Path, cell: Cell) -> PathStats:
    low, high = cell.estimate.interval()
    return PathStats(
        path=path,
        count=cell.estimate.seen,
        success_rate=cell.estimate.value,
        mean_duration_ms=cell.mean_duration_ms,
        low=low,
        high=high,
    )


def _node_stats(node_id: str, cell: Cell) -> NodeStats:
    low, high = cell.estimate.interval()
    return NodeStats(
        node_id=node_id,
        count=cell.estimate.seen,
        success_rate=cell.estimate.value,
        mean_duration_ms=cell.mean_duration_ms,
        low=low,
        high=high,
    )
