"""When to start a crashed part again."""

from dataclasses import dataclass

FIRST_DELAY = 0.1
LONGEST_DELAY = 10.0
STEADY_SECONDS = 30.0
MOST_FAILURES = 10


@dataclass(frozen=True, slots=True)
class Failures:
    """How often in a row a part failed; running steadily for a while forgives it all."""

    count: int = 0

    def after_running(self, seconds: float) -> "Failures":
        """The count after one more failure, `seconds` after its last start."""
        return Failures(1 if seconds >= STEADY_SECONDS else self.count + 1)

    @property
    def delay(self) -> float:
        """Seconds to wait before the next start: 0.1, 0.2, 0.4 … at most 10."""
        return min(LONGEST_DELAY, FIRST_DELAY * 2 ** max(0, self.count - 1))

    @property
    def too_many(self) -> bool:
        """Whether to give up; after about 40 seconds of trying."""
        return self.count > MOST_FAILURES
