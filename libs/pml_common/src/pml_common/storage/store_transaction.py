"""Transactions of stores, in Postgres and in memory, on the inbox entry of one handling."""

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from pml_common.contracts.base import Message


class Entry(Protocol):
    """An inbox entry, see `inbox.InboxEntry` and `memory.MemoryInboxEntry`."""

    replayed: tuple[Message, ...] | None

    def conclude(self, facts: Sequence[Message]) -> Sequence[Message]:
        """Store the messages to publish with the effect: a redelivery publishes the same."""
        ...


E = TypeVar("E", bound=Entry)


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
