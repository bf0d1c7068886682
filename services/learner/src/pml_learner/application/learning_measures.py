"""Measurements of what is learned, and how late."""

import time
from collections.abc import Sequence

from pml_common.contracts.executor import RunFinished
from pml_common.telemetry import metrics
from pml_common.telemetry.instruments import Distribution, Sum

_runs = Sum(metrics.LEARNED)
_lag = Distribution(metrics.LEARNER_LAG)
_rebuilds = Sum(metrics.REBUILDS)


def measure_learned(
    received: int, new: Sequence[RunFinished], learned: Sequence[RunFinished]
) -> None:
    """Measure a batch once it is stored: `new` are those of its runs that were not handled before,
    `learned` those whose data was not deleted."""
    for count, outcome in (
        (len(learned), "learned"),
        (received - len(new), "repeated"),
        (len(new) - len(learned), "deleted"),
    ):
        if count:
            _runs.add(count, outcome)
    if learned:
        oldest = min(run.started_at + run.duration_ms for run in learned)
        _lag.record(max(0.0, time.time() - oldest / 1000))


def count_rebuilt() -> None:
    """Count a capability whose learning was rebuilt."""
    _rebuilds.add(1)
