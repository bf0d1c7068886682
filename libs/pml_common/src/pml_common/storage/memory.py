"""The in-memory inbox, for services' in-memory stores."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from uuid import UUID

from pml_common.contracts.base import Message
from pml_common.storage.store_transaction import BatchRecord


class MemoryInboxEntry:
    """One handling; `stage` its changes: applied at its end, discarded after an error."""

    def __init__(self, replayed: tuple[Message, ...] | None) -> None:
        self.replayed = replayed
        self.facts: tuple[Message, ...] = ()
        self.staged: list[Callable[[], None]] = []

    def stage(self, change: Callable[[], None]) -> None:
        """Apply a change if the handling succeeds."""
        self.staged.append(change)

    def conclude(self, facts: Sequence[Message]) -> Sequence[Message]:
        """Store the messages to publish with the effect: a redelivery publishes the same."""
        self.facts = tuple(facts)
        return self.facts


class MemoryInboxBatch(BatchRecord):
    """One handling of several messages; `stage` its changes: applied at its end, discarded after an
    error."""

    def __init__(self, replayed: Mapping[UUID, tuple[Message, ...]]) -> None:
        super().__init__(replayed)
        self.staged: list[Callable[[], None]] = []

    def stage(self, change: Callable[[], None]) -> None:
        """Apply a change if the handling succeeds."""
        self.staged.append(change)


class MemoryInbox:
    """Handled messages and their results; one handling at a time."""

    def __init__(self) -> None:
        self._facts: dict[tuple[UUID, str], tuple[Message, ...]] = {}
        self._lock = asyncio.Lock()

    def facts_of(self, message_id: UUID, consumer: str) -> tuple[Message, ...] | None:
        """Return the messages published by the handling of a message; None if not handled."""
        return self._facts.get((message_id, consumer))

    @asynccontextmanager
    async def once(self, message_id: UUID, consumer: str) -> AsyncGenerator[MemoryInboxEntry]:
        """Handle a message once, as `inbox.once` does."""
        async with self._lock:
            handling = MemoryInboxEntry(self._facts.get((message_id, consumer)))
            yield handling
            if handling.replayed is None:
                for change in handling.staged:
                    change()
                self._facts[message_id, consumer] = handling.facts

    @asynccontextmanager
    async def batch_once(
        self, message_ids: Collection[UUID], consumer: str
    ) -> AsyncGenerator[MemoryInboxBatch]:
        """Handle messages once, as `inbox.batch_once` does."""
        async with self._lock:
            known = {each: self._facts.get((each, consumer)) for each in message_ids}
            handling = MemoryInboxBatch(
                {each: facts for each, facts in known.items() if facts is not None}
            )
            yield handling
            for change in handling.staged:
                change()
            for each in known.keys() - handling.replayed.keys():
                self._facts[each, consumer] = tuple(handling.facts.get(each, ()))
