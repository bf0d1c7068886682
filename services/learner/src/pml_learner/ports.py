"""Ports of the learner's handlers."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol
from uuid import UUID

from pml_common.contracts.base import Message
from pml_common.contracts.capability import CapabilityIdentity
from pml_common.contracts.learner import ListTraces, TracePage
from pml_common.contracts.scope import Scope
from pml_learner.domain.lesson import Experience, Lesson


class InboxTransaction(Protocol):
    """The transaction that handles one message: its changes are applied once or not at all."""

    @property
    def replayed(self) -> Sequence[Message] | None:
        """The messages published earlier, if this message was handled before."""
        ...

    async def experience_of(self, scope: Scope, capability: CapabilityIdentity) -> Experience:
        """Read and lock the experience of a capability until the transaction ends."""
        ...

    async def save(self, lesson: Lesson) -> None:
        """Store a trace and the experience including it."""
        ...

    def conclude(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Store the messages to publish, so that a redelivery publishes the same."""
        ...


class TraceStore(Protocol):
    """Traces and learning. Every method may raise StorageUnavailable."""

    def once(
        self, message_id: UUID, consumer: str
    ) -> AbstractAsyncContextManager[InboxTransaction]:
        """Handle a message exactly once under redelivery; an error in the block rolls back."""
        ...

    async def traces(self, query: ListTraces) -> TracePage:
        """Return traces of a capability, of a workflow or of the whole scope, newest first."""
        ...
