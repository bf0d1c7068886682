"""A second, plain implementation of what traces teach, to compare the learner with."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from pml_common.contracts.learner import ExecutionTrace

Seen = tuple[str, int, float]
"""Principal, hour, actual."""


@dataclass(frozen=True)
class Expected:
    """Counts and values of a capability."""

    count: int
    successes: int
    streak: int
    caller_faults: int
    environment_faults: int
    value: float | None
    paths: dict[tuple[str, ...], tuple[int, float]]
    decisions: dict[tuple[str, str], tuple[int, float]]


def expected(traces: Sequence[tuple[ExecutionTrace, str]]) -> Expected:
    """Return what traces teach that are in the order of their storage, each with its principal."""
    judged = [(trace, who) for trace, who in traces if trace.fault not in ("caller", "environment")]
    kept = list(dict.fromkeys(who for _, who in judged))[:8]
    overall: list[Seen] = []
    paths: dict[tuple[str, ...], list[Seen]] = defaultdict(list)
    decisions: dict[tuple[str, str], list[tuple[Seen, int]]] = defaultdict(list)
    for trace, who in judged:
        hour = math.floor(trace.executed_at / 3_600_000)
        seen = who if who in kept else "others", hour, float(trace.success)
        overall.append(seen)
        paths[trace.executed_path].append(seen)
        times: dict[tuple[str, str], int] = defaultdict(int)
        for each in trace.decisions:
            times[each.node_id, each.outcome] += each.times
        for key, number in times.items():
            decisions[key].append((seen, number))
    ends = "".join("1" if trace.success else "0" for trace, _ in judged)
    return Expected(
        count=len(traces),
        successes=ends.count("1"),
        streak=len(ends) - len(ends.rstrip("1")),
        caller_faults=sum(trace.fault == "caller" for trace, _ in traces),
        environment_faults=sum(trace.fault == "environment" for trace, _ in traces),
        value=_value([(each, 1) for each in overall]) if overall else None,
        paths={path: (len(all_), _value([(s, 1) for s in all_])) for path, all_ in paths.items()},
        decisions={
            key: (sum(number for _, number in all_), _value(all_))
            for key, all_ in decisions.items()
        },
    )


def _value(seen: Sequence[tuple[Seen, int]]) -> float:
    """Mean of the principals' values, weighed by their outcomes: 5 an hour, 20 in all."""
    total = weights = 0.0
    for who in {each[0] for each, _ in seen}:
        value: float | None = None
        weight, in_hour, latest = 0, 0, -1
        for (each, hour, actual), times in seen:
            if each == who:
                for _ in range(times):
                    value = actual if value is None else value + 0.1 * (actual - value)
                in_hour = 1 if hour > latest else in_hour + 1
                latest = max(latest, hour)
                weight = min(20, weight + (in_hour <= 5))
        total += weight * (value or 0.0)
        weights += weight
    return total / weights
