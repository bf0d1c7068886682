"""A queue that can end, to iterate over."""

import asyncio
from typing import Generic, TypeVar

T = TypeVar("T")


class Inbox(Generic[T]):
    """An async iterator fed from callbacks; abandoning one wait for it loses nothing."""

    def __init__(self) -> None:
        self._items: asyncio.Queue[T | None] = asyncio.Queue()

    def put(self, item: T) -> None:
        """Add an item."""
        self._items.put_nowait(item)

    def close(self) -> None:
        """End the iteration after what is already there."""
        self._items.put_nowait(None)

    def __aiter__(self) -> "Inbox[T]":
        return self

    async def __anext__(self) -> T:
        item = await self._items.get()
        if item is None:
            raise StopAsyncIteration
        return item
