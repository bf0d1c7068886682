"""Circuit breaker: a server that does not answer is asked seldom."""

from dataclasses import dataclass

OPENS_AFTER = 2
"""Failures in a row after which it is asked no more, for some time."""

FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 5.0


@dataclass(frozen=True)
class Circuit:
    """Failures in a row, and the time, in seconds of any clock, of the next attempt."""

    failures: int = 0
    retry_at: float = 0.0

    @property
    def is_open(self) -> bool:
        """Whether calls are refused until the next attempt."""
        return self.failures >= OPENS_AFTER

    def allows(self, now: float) -> bool:
        """Whether a call may be made."""
        return not self.is_open or now >= self.retry_at

    def tried(self, now: float, within_s: float) -> "Circuit":
        """The state while a call of at most `within_s` is under way: of an open circuit there is
        one at a time."""
        return Circuit(self.failures, now + within_s) if self.is_open else self

    def failed(self, now: float) -> "Circuit":
        """The state after a failure: waits double up to the longest."""
        doublings = min(self.failures + 1 - OPENS_AFTER, 10)
        wait_s = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0**doublings)
        return Circuit(self.failures + 1, now + wait_s)
