"""Pauses of live work, in which other work may be done."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Pauses:
    """Whether no live work is under way and none has been for `after_s`; `clock` is monotonic, in
    seconds."""

    clock: Callable[[], float]
    after_s: float
    _under_way: int = 0
    _ended: float = field(default=float("-inf"))

    @contextmanager
    def live(self) -> Generator[None]:
        """Do live work until the context exits."""
        self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1
            self._ended = self.clock()

    @property
    def is_one(self) -> bool:
        """Whether this is a pause."""
        return self._under_way == 0 and self.clock() - self._ended >= self.after_s
