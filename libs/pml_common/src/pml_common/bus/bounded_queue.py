"""An async queue that can be closed and is bounded by weight."""

import asyncio
from enum import Enum
from typing import Generic, TypeVar

from pml_common.bus.codec import PAYLOAD, Envelope
from pml_common.bus.errors import Overrun

T = TypeVar("T")

MOST_FOLLOWED = 16 * 1024 * 1024
"""The total `weight` that a follower may leave unread."""
_EACH = 1024
_ELSEWHERE = 1024 * 1024


def weight(envelope: Envelope) -> int:
    """Estimate the bytes that a queued message takes; the size of a body in the object store is
    unknown."""
    return _EACH + (_ELSEWHERE if PAYLOAD in envelope.headers else len(envelope.data))


class _End(Enum):
    CLOSED = "closed"
    OVERRUN = "overrun"


class BoundedQueue(Generic[T]):
    """An async iterator fed from callbacks; cancelling a wait loses nothing. Items beyond a total
    weight of `most` are dropped: after the queued ones, Overrun is raised."""

    def __init__(self, most: int | None = None) -> None:
        self._items: asyncio.Queue[tuple[T, int] | _End] = asyncio.Queue()
        self._room = most
        self._ended = False

    def put(self, item: T, weight: int = 0) -> None:
        """Add an item."""
        if self._ended:
            return
        if self._room is not None:
            self._room -= weight
            if self._room < 0:
                self._end(_End.OVERRUN)
                return
        self._items.put_nowait((item, weight))

    def close(self) -> None:
        """End the iteration after the queued items."""
        self._end(_End.CLOSED)

    def _end(self, how: _End) -> None:
        if not self._ended:
            self._ended = True
            self._items.put_nowait(how)

    def __aiter__(self) -> "BoundedQueue[T]":
        return self

    async def __anext__(self) -> T:
        match await self._items.get():
            case _End.CLOSED:
                raise StopAsyncIteration
            case _End.OVERRUN:
                raise Overrun
            case item, its_weight:
                if self._room is not None:
                    self._room += its_weight
                return item
