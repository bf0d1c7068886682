"""Temporal-difference learning of a capability's paths and decisions.

V ← V + alpha * (actual - V), with actual 1 for a run that succeeded and 0 for one that failed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pml_common.contracts.capability import DecisionStats, Learning, OutcomeStats, PathStats
from pml_common.contracts.trace import BranchDecision

Path = tuple[str, ...]

DOMINANT_FROM = 3
"""Runs that a path needs before it can be dominant."""

MAX_PATHS = 100
MAX_PATH_NODES = 20_000
"""Bounds of a capability's stored paths, which every update carries: their number, and their nodes
in all. Loops over data create ever more paths; the paths of fewest runs are dropped, the oldest
first."""


@dataclass(frozen=True)
class TdRule:
    """`alpha` is the learning rate, `prior` the success rate before the first outcome."""

    alpha: float = 0.1
    prior: float = 0.5

    def step(self, value: float, actual: float, times: int = 1) -> float:
        """Update `value` towards `actual`, once or `times` in a row."""
        return actual + (1.0 - self.alpha) ** times * (value - actual)


def path_stats(learning: Learning, path: Path) -> PathStats | None:
    """Return the statistics of exactly this path."""
    return next((known for known in learning.paths if known.path == path), None)


def update(
    learning: Learning,
    path: Path,
    decisions: Sequence[BranchDecision],
    *,
    success: bool,
    duration_ms: float,
    rule: TdRule,
) -> Learning:
    """Learn from one run that took `path`; `duration_ms` ≥ 0."""
    paths = _with_path(learning.paths, path, success, duration_ms, rule)
    return Learning(
        paths=paths,
        dominant_path=dominant_path(paths),
        decision_stats=_with_decisions(learning.decision_stats, decisions, success, rule),
    )


def dominant_path(paths: Sequence[PathStats]) -> Path:
    """Return the path of highest success rate * runs, of those run often enough; else the first."""
    tried = [known for known in paths if known.count >= DOMINANT_FROM]
    if tried:
        return max(tried, key=lambda known: known.success_rate * known.count).path
    return paths[0].path if paths else ()


def _with_path(
    paths: Sequence[PathStats], path: Path, success: bool, duration_ms: float, rule: TdRule
) -> tuple[PathStats, ...]:
    fresh = PathStats(path=path, count=0, success_rate=rule.prior, mean_duration_ms=duration_ms)
    known = any(candidate.path == path for candidate in paths)
    return _bounded(
        [
            _updated(candidate, success, duration_ms, rule) if candidate.path == path else candidate
            for candidate in (*paths, *(() if known else (fresh,)))
        ],
        path,
    )


def _bounded(paths: Sequence[PathStats], newest: Path) -> tuple[PathStats, ...]:
    """Drop paths over the bounds; `newest` is never dropped."""
    kept = list(paths)
    nodes = sum(len(each.path) for each in kept)
    while len(kept) > 1 and (len(kept) > MAX_PATHS or nodes > MAX_PATH_NODES):
        others = (each for each in kept if each.path != newest)
        forgotten = min(others, key=lambda each: each.count)
        kept.remove(forgotten)
        nodes -= len(forgotten.path)
    return tuple(kept)


def _updated(known: PathStats, success: bool, duration_ms: float, rule: TdRule) -> PathStats:
    return PathStats(
        path=known.path,
        count=known.count + 1,
        success_rate=rule.step(known.success_rate, float(success)),
        mean_duration_ms=rule.step(known.mean_duration_ms, duration_ms),
    )


def _with_decisions(
    known: Sequence[DecisionStats],
    decisions: Sequence[BranchDecision],
    success: bool,
    rule: TdRule,
) -> tuple[DecisionStats, ...]:
    outcomes = {stats.node_id: dict(stats.outcomes) for stats in known}
    for decision in decisions:
        of_node = outcomes.setdefault(decision.node_id, {})
        before = of_node.get(decision.outcome, OutcomeStats(count=0, success_rate=rule.prior))
        of_node[decision.outcome] = OutcomeStats(
            count=before.count + decision.times,
            success_rate=rule.step(before.success_rate, float(success), decision.times),
        )
    return tuple(
        DecisionStats(node_id=node_id, outcomes=of_node) for node_id, of_node in outcomes.items()
    )
