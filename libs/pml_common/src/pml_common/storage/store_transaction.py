"""Transactions of stores, in Postgres and in memory, on the inbox entry of one handling."""

from collections.abc import Mapping, Sequence
from typing import Generic, Protocol, TypeVar
from uuid import UUID

from pml_common.contracts.base import Message


class Entry(Protocol):
    """An inbox entry, see `inbox.InboxEntry` and `memory.MemoryInboxEntry`."""

    replayed: tuple[Message, ...] | None

    def conclude(self, facts: Sequence[Message]) -> Sequence[Message]:
        """Store the messages to publish with the effect: a redelivery publishes the same."""
        ...


class BatchRecord:
    """State of one handling of several messages: `replayed` holds the messages published
    after earlier handlings, by the id of what was handled; the others are to be concluded."""

    def __init__(self, replayed: Mapping[UUID, tuple[Message, ...]]) -> None:
        self.replayed = replayed
        self.facts: dict[UUID, Sequence[Message]] = {}

    def conclude(self, facts: Mapping[UUID, Sequence[Message]]) -> Mapping[UUID, Sequence[Message]]:
        """Store with the effect what to publish after each message, and return it with what was
        published earlier: a redelivery publishes the same."""
        self.facts |= {cause: tuple(following) for cause, following in facts.items() if following}
        return {**self.replayed, **self.facts}


E = TypeVar("E", bound=Entry)
B = TypeVar("B", bound=BatchRecord)


class StoreTransaction(Generic[E]):
    """Implements what the ports of all services' store transactions share."""

    def __init__(self, transaction: E) -> None:
        self._transaction = transaction

    @property
    def replayed(self) -> Sequence[Message] | None:
        """The messages of an earlier handling; None if this is the first."""
        return self._transaction.replayed

    def conclude(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Store the messages to publish with the effect: a redelivery publishes the same."""
        return self._transaction.conclude(messages)


class StoreBatch(Generic[B]):
    """Implements what the ports of all services' batch transactions share."""

    def __init__(self, batch: B) -> None:
        self._batch = batch

    @property
    def replayed(self) -> Mapping[UUID, Sequence[Message]]:
        """The messages published after each message of the batch that was handled before."""
        return self._batch.replayed

    def conclude(self, facts: Mapping[UUID, Sequence[Message]]) -> Mapping[UUID, Sequence[Message]]:
        """Store what to publish after each message and return it with what was published
        earlier."""
        return self._batch.conclude(facts)
