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
class QueryMoment:
    """The moment of a query: its time, and the number of invalidations before it."""

    at: float
    invalidations: int


class ReplyCache(Generic[K, V]):
    """Replies by key. Each is valid for `max_age_s` seconds from its query on; the
    `max_entries` most recently used are stored."""

    def __init__(
        self, *, max_age_s: float, max_entries: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._max_age_s = max_age_s
        self._max_entries = max_entries
        self._clock = clock
        self._entries: OrderedDict[K, tuple[V, float]] = OrderedDict()
        self._invalidations = 0

    def get(self, key: K) -> V | None:
        """Return the cached reply, if it is still valid."""
        entry = self._entries.get(key)
        if entry is None or self._clock() - entry[1] > self._max_age_s:
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def begin_query(self) -> QueryMoment:
        """Mark the moment of a query, before it is sent; `put` needs it."""
        return QueryMoment(self._clock(), self._invalidations)

    def put(self, moment: QueryMoment, key: K, value: V) -> None:
        """Store a reply, unless something was invalidated since the query: it may be older than
        that."""
        if moment.invalidations != self._invalidations:
            return
        self._entries[key] = value, moment.at
        self._entries.move_to_end(key)
        if len(self._entries) > self._max_entries:
            self._entries.popitem(last=False)

    def invalidate(self, is_meant: Callable[[K], bool]) -> None:
        """Remove the replies under these keys."""
        self._invalidations += 1
        for key in list(filter(is_meant, self._entries)):
            del self._entries[key]
