"""Outages of a server, as one process observes them. Pure."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

_MOST = 100


@dataclass(frozen=True)
class Outage:
    """A period without an answer, in seconds of this process's monotonic clock."""

    began: float
    ended: float

    def since(self, moment: float) -> float:
        """Return its seconds after `moment`."""
        return max(0.0, self.ended - max(self.began, moment))


def downtime_since(outages: Sequence[Outage], moment: float) -> float:
    """Return the total seconds of outage after `moment`."""
    return sum(outage.since(moment) for outage in outages)


def no_outages() -> Sequence[Outage]:
    """Return the outages of a bus that is always available."""
    return ()


class OutageLog:
    """Records the last 100 outages."""

    def __init__(self) -> None:
        self._over: deque[Outage] = deque(maxlen=_MOST)
        self._began: float | None = None

    def begin(self, at: float) -> None:
        """Begin an outage; the last answer came at `at`."""
        if self._began is None:
            self._began = at

    def end(self, at: float) -> None:
        """End the outage: the server answered at `at`."""
        if self._began is not None:
            self._over.append(Outage(self._began, at))
            self._began = None

    def as_of(self, now: float) -> tuple[Outage, ...]:
        """Return all outages, oldest first; an ongoing one ends `now`."""
        ongoing = () if self._began is None else (Outage(self._began, now),)
        return (*self._over, *ongoing)
