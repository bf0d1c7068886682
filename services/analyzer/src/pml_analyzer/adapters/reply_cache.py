"""A cache of query replies, bounded in age and number, without stale replies after an
invalidation."""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True)
class Question:
    """The moment of a query: its time, and the number of invalidations before it."""

    at: float
    drops: int


class Copies(Generic[K, V]):
    """Replies by key. Each is valid for `max_age_s` seconds from its query on; the `most` most
    recently used are stored."""

    def __init__(
        self, *, max_age_s: float, most: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._max_age_s = max_age_s
        self._most = most
        self._clock = clock
        self._kept: OrderedDict[K, tuple[V, float]] = OrderedDict()
        self._drops = 0

    def get(self, key: K) -> V | None:
        """Return the cached reply, if it is still valid."""
        kept = self._kept.get(key)
        if kept is None or self._clock() - kept[1] > self._max_age_s:
            return None
        self._kept.move_to_end(key)
        return kept[0]

    def asking(self) -> Question:
        """Mark the moment of a query, before it is sent; `keep` needs it."""
        return Question(self._clock(), self._drops)

    def keep(self, question: Question, key: K, value: V) -> None:
        """Store a reply, unless something was invalidated since the query: it may be older than
        that."""
        if question.drops != self._drops:
            return
        self._kept[key] = value, question.at
        self._kept.move_to_end(key)
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)

    def drop(self, is_meant: Callable[[K], bool]) -> None:
        """Remove the replies under these keys."""
        self._drops += 1
        for key in list(filter(is_meant, self._kept)):
            del self._kept[key]
