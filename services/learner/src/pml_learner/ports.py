"""What the learner's handlers need of the world."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol
from uuid import UUID

from pml_common.contracts.base import Message
from pml_common.contracts.capability import CapabilityIdentity
from pml_common.contracts.learner import ListTraces, TracePage
from pml_common.contracts.scope import Scope
from pml_learner.domain.lesson import Experience, Lesson


class Handling(Protocol):
    """One handling of one message: what is saved in it counts once, or not at all."""

    @property
    def replayed(self) -> Sequence[Message] | None:
        """The facts stated before, when this message was handled before."""
        ...

    async def experience_of(self, scope: Scope, capability: CapabilityIdentity) -> Experience:
        """What is known of a capability; nobody else learns about it until this handling ends."""
        ...

    async def save(self, lesson: Lesson) -> None:
        """Keep a trace and the experience it led to."""
        ...

    def conclude(self, facts: Sequence[Message]) -> Sequence[Message]:
        """Remember what is stated, so that a redelivery states the same."""
        ...


class TraceStore(Protocol):
    """Traces and what they taught. Everything here may raise StorageUnavailable."""

    def once(self, message_id: UUID, consumer: str) -> AbstractAsyncContextManager[Handling]:
        """Handle a message once, whatever is redelivered; an error in the block undoes it."""
        ...

    async def traces(self, query: ListTraces) -> TracePage:
        """Traces of a capability, of a workflow or of the whole scope, newest first."""
        ...
