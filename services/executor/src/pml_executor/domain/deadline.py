"""When a run began, and how long it may still go on.

Not counted are the time in which it was parked and that in which the bus was away. What passed
before this executor had the run is told by the journal, whose times are the bus's; from then on the
monotonic clock counts, so that no clock that is set changes the run's time.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pml_common.contracts.executor import RunWorkflow
from pml_common.outages import Outage, downtime_since
from pml_executor.domain.journal import RunJournal
from pml_executor.domain.parking import parked_ms, parked_spans

_MARGIN_S = 30.0
"""A run that was granted time for an outage ends this long before its grant does: then the gateway
gives it up."""

Span = tuple[float, float]


@dataclass(frozen=True)
class Moment:
    """One moment on both clocks: Unix milliseconds by the bus, and seconds of the monotonic one;
    `outages` are those until then."""

    ts: float
    monotonic: float
    outages: Sequence[Outage] = ()


@dataclass(frozen=True)
class RunTime:
    """The time of one run in one executor, all in seconds.

    `passed` and `away` are what had passed, and what of that was without the bus, at `since` on the
    monotonic clock; at most `most_away` is not counted in all.
    """

    timeout: float
    passed: float
    away: float
    most_away: float
    since: float
    look: Callable[[], tuple[float, Sequence[Outage]]]

    def left(self) -> float:
        """Until the deadline; it stands still while the bus is away."""
        now, outages = self.look()
        away = min(self.most_away, self.away + downtime_since(outages, self.since))
        return self.timeout - (self.passed + now - self.since) + away


def run_time(
    command: RunWorkflow,
    journal: RunJournal,
    now: Moment,
    most_away: float,
    look: Callable[[], tuple[float, Sequence[Outage]]],
) -> RunTime:
    """The time of a run that an executor begins, or takes over, now. A journal that was begun later
    than now, by a clock that was set meanwhile, is one that begins."""
    passed = max(0.0, now.ts - began(journal)) / 1000
    until_expired = command.grant.expires_at.timestamp() - now.ts / 1000
    room = until_expired - (command.timeout_s - passed) - _MARGIN_S
    return RunTime(
        timeout=command.timeout_s,
        passed=passed,
        away=_away_ms(journal, now) / 1000,
        most_away=max(0.0, min(most_away, room)),
        since=now.monotonic,
        look=look,
    )


def began(journal: RunJournal) -> float:
    """When the run would have begun had it never been parked; Unix milliseconds."""
    return journal.entries[0].ts + parked_ms(journal.marks)


def _away_ms(journal: RunJournal, now: Moment) -> float:
    """For how long the bus was away since the run began and while it was not parked."""
    first = journal.entries[0].ts
    spans = [(_ts(now, one.began), min(now.ts, _ts(now, one.ended))) for one in now.outages]
    away = [(max(first, start), end) for start, end in spans if end > first]
    parked = list(parked_spans(journal.marks))
    return _covered([*away, *parked]) - _covered(parked)


def _ts(now: Moment, monotonic: float) -> float:
    return now.ts - (now.monotonic - monotonic) * 1000


def _covered(spans: Sequence[Span]) -> float:
    """For how long at least one of the spans goes on."""
    total, until = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total
