"""When the server was away, as one process knows it. Pure."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

_MOST = 100


@dataclass(frozen=True)
class Outage:
    """For how long the server did not answer, in seconds of this process's monotonic clock."""

    began: float
    ended: float

    def since(self, moment: float) -> float:
        """Seconds of it that came after `moment`."""
        return max(0.0, self.ended - max(self.began, moment))


def away_since(outages: Sequence[Outage], moment: float) -> float:
    """Seconds without the server after `moment`."""
    return sum(outage.since(moment) for outage in outages)


def no_outages() -> Sequence[Outage]:
    """Those of a bus that is always there."""
    return ()


class Outages:
    """Records the last 100 outages."""

    def __init__(self) -> None:
        self._over: deque[Outage] = deque(maxlen=_MOST)
        self._began: float | None = None

    def lost(self, at: float) -> None:
        """The server does not answer, and did last at `at`."""
        if self._began is None:
            self._began = at

    def found(self, at: float) -> None:
        """The server answers."""
        if self._began is not None:
            self._over.append(Outage(self._began, at))
            self._began = None

    def until(self, now: float) -> tuple[Outage, ...]:
        """All, oldest first; one that goes on ends `now`."""
        ongoing = () if self._began is None else (Outage(self._began, now),)
        return (*self._over, *ongoing)
