"""Answers kept for a while: not too old, not too many, none that a change overtook."""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True)
class Question:
    """When something was asked: on this clock, and after how many drops."""

    at: float
    drops: int


class Copies(Generic[K, V]):
    """Copies by key. Each serves for `max_age_s` seconds from its question on; the `most` used last
    are kept."""

    def __init__(
        self, *, max_age_s: float, most: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._max_age_s = max_age_s
        self._most = most
        self._clock = clock
        self._kept: OrderedDict[K, tuple[V, float]] = OrderedDict()
        self._drops = 0

    def get(self, key: K) -> V | None:
        """The copy, if there is one that may serve."""
        kept = self._kept.get(key)
        if kept is None or self._clock() - kept[1] > self._max_age_s:
            return None
        self._kept.move_to_end(key)
        return kept[0]

    def asking(self) -> Question:
        """To be called before something is asked whose answer shall be kept."""
        return Question(self._clock(), self._drops)

    def keep(self, question: Question, key: K, value: V) -> None:
        """Keep an answer, unless something was dropped meanwhile: it may be older than that."""
        if question.drops != self._drops:
            return
        self._kept[key] = value, question.at
        self._kept.move_to_end(key)
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)

    def drop(self, is_meant: Callable[[K], bool]) -> None:
        """Forget the copies under these keys."""
        self._drops += 1
        for key in list(filter(is_meant, self._kept)):
            del self._kept[key]
