"""Transactions of stores, on the inbox entry of one handling."""

from collections.abc import Sequence

from pml_common.contracts.base import Message
from pml_common.storage.inbox import InboxEntry


class StoreTransaction:
    """Implements what the ports of all services' store transactions share."""

    def __init__(self, transaction: InboxEntry) -> None:
        self._transaction = transaction

    @property
    def replayed(self) -> Sequence[Message] | None:
        """The messages of an earlier handling; None if this is the first."""
        return self._transaction.replayed

    def conclude(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Store the messages to publish with the effect: a redelivery publishes the same."""
        return self._transaction.conclude(messages)
