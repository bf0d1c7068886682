"""When to start a crashed part again."""

from dataclasses import dataclass

FIRST_DELAY = 0.1
LONGEST_DELAY = 60.0
STEADY_SECONDS = 30.0
_MOST_DOUBLINGS = 100


@dataclass(frozen=True, slots=True)
class Failures:
    """How often in a row a part failed; running steadily for a while forgives it all."""

    count: int = 0

    def after_running(self, seconds: float) -> "Failures":
        """The count after one more failure, `seconds` after its last start."""
        return Failures(1 if seconds >= STEADY_SECONDS else self.count + 1)

    @property
    def delay(self) -> float:
        """Seconds to wait before the next start: 0.1, 0.2, 0.4 … at most a minute."""
        doublings = min(max(0, self.count - 1), _MOST_DOUBLINGS)
        return min(LONGEST_DELAY, FIRST_DELAY * 2**doublings)
