"""A run's effective start and remaining time.

Time in which it was parked, or the bus was unavailable, does not count. Time before this executor
had the run is taken from the journal, whose times are the bus's; from then on the monotonic clock
counts, so that setting a clock does not change the run's time.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pml_common.contracts.executor import RunWorkflow
from pml_common.outages import Outage, downtime_since
from pml_executor.domain.journal import RunJournal
from pml_executor.domain.parking import parked_ms, parked_spans

_MARGIN_S = 30.0
"""A run whose time was extended for an outage ends this long before its grant expires: then the
gateway gives it up."""

Span = tuple[float, float]


@dataclass(frozen=True)
class ClockReading:
    """One moment on both clocks: Unix milliseconds by the bus, and seconds of the monotonic clock;
    `outages` are those until then."""

    ts: float
    monotonic: float
    outages: Sequence[Outage] = ()


@dataclass(frozen=True)
class RunTime:
    """Time account of one run in one executor, all in seconds.

    At `since` on the monotonic clock, `passed` had passed, `away` of it without the bus; at most
    `max_away` is not counted in all.
    """

    timeout: float
    passed: float
    away: float
    max_away: float
    since: float
    read_clock: Callable[[], tuple[float, Sequence[Outage]]]

    def remaining(self) -> float:
        """Return the time until the deadline, which does not decrease while the bus is
        unavailable."""
        now, outages = self.read_clock()
        away = min(self.max_away, self.away + downtime_since(outages, self.since))
        return self.timeout - (self.passed + now - self.since) + away


def run_time(
    command: RunWorkflow,
    journal: RunJournal,
    now: ClockReading,
    max_away: float,
    read_clock: Callable[[], tuple[float, Sequence[Outage]]],
) -> RunTime:
    """Return the time account of a run that an executor starts, or takes over, now. A journal that
    starts later than now, by a clock that was set meanwhile, counts as starting now."""
    passed = max(0.0, now.ts - effective_start(journal)) / 1000
    until_expired = command.grant.expires_at.timestamp() - now.ts / 1000
    room = until_expired - (command.timeout_s - passed) - _MARGIN_S
    return RunTime(
        timeout=command.timeout_s,
        passed=passed,
        away=_away_ms(journal, now) / 1000,
        max_away=max(0.0, min(max_away, room)),
        since=now.monotonic,
        read_clock=read_clock,
    )


def effective_start(journal: RunJournal) -> float:
    """Return the run's start, delayed by the time in which it was parked; Unix milliseconds."""
    return journal.entries[0].ts + parked_ms(journal.marks)


def _away_ms(journal: RunJournal, now: ClockReading) -> float:
    """Return how long the bus was unavailable since the run began, while it was not parked."""
    first = journal.entries[0].ts
    spans = [(_ts(now, one.began), min(now.ts, _ts(now, one.ended))) for one in now.outages]
    away = [(max(first, start), end) for start, end in spans if end > first]
    parked = list(parked_spans(journal.marks))
    return _covered([*away, *parked]) - _covered(parked)


def _ts(now: ClockReading, monotonic: float) -> float:
    return now.ts - (now.monotonic - monotonic) * 1000


def _covered(spans: Sequence[Span]) -> float:
    """Return the total length of the union of the spans."""
    total, until = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total
