"""States as they are stored, and those made from what was learned before there were states."""

from typing import Final, NamedTuple

from pydantic import TypeAdapter

from pml_common.contracts.capability import Learning, Usage
from pml_learner.domain.outcome import Path
from pml_learner.domain.state import Cell, Counts, State
from pml_learner.domain.temporal_difference import ALPHA, EARLIER, MOST, Estimate, Voice

_PRIOR: Final = 0.5
"""The value from which paths and outcomes began before the first observation initialised them."""


class _Stored(NamedTuple):
    """A state as lists, which are short in JSON."""

    counts: Counts
    principals: tuple[str, ...]
    overall: Estimate
    paths: tuple[tuple[Path, Cell], ...]
    outcomes: tuple[tuple[str, str, Estimate], ...]
    nodes: tuple[tuple[str, Cell], ...]


_STORED: Final = TypeAdapter(_Stored)


def dumped(state: State) -> str:
    """Return the state as JSON."""
    outcomes = tuple((*key, estimate) for key, estimate in state.outcomes.items())
    paths, nodes = tuple(state.paths.items()), tuple(state.nodes.items())
    stored = _Stored(state.counts, state.principals, state.overall, paths, outcomes, nodes)
    return _STORED.dump_json(stored).decode()


def loaded(text: str) -> State:
    """Return the state that JSON has. Raises ValidationError."""
    stored = _STORED.validate_json(text)
    return State(
        counts=stored.counts,
        principals=stored.principals,
        overall=stored.overall,
        paths=dict(stored.paths),
        outcomes={(node_id, outcome): each for node_id, outcome, each in stored.outcomes},
        nodes=dict(stored.nodes),
    )


def adopted(usage: Usage, learning: Learning) -> State:
    """Return the state that stands for what was learned before there were states: values without
    the prior that they began from, of principals that nobody knows."""
    share = usage.success_count / usage.count if usage.count else 0.0
    return State(
        counts=Counts(
            runs=usage.count,
            successes=usage.success_count,
            streak=usage.success_streak,
            mean_duration_ms=usage.mean_duration_ms,
        ),
        overall=_earlier(share, usage.count),
        paths={
            known.path: Cell(
                _earlier(_without_prior(known.success_rate, known.count), known.count),
                known.mean_duration_ms,
            )
            for known in learning.paths
        },
        outcomes={
            (decision.node_id, outcome): _earlier(
                _without_prior(stats.success_rate, stats.count), stats.count
            )
            for decision in learning.decision_stats
            for outcome, stats in decision.outcomes.items()
        },
    )


def _earlier(value: float, count: int) -> Estimate:
    return Estimate(count, (Voice(EARLIER, value, min(MOST, count)),)) if count else Estimate()


def _without_prior(value: float, count: int) -> float:
    """Return the weighted mean of the outcomes alone: the prior's share is (1 - ALPHA)^count."""
    share = (1.0 - ALPHA) ** count
    return min(1.0, max(0.0, (value - share * _PRIOR) / (1.0 - share))) if count else value
