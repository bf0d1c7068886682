"""Ports of the learner's handlers."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Protocol
from uuid import UUID

from pml_common.contracts.base import Message
from pml_common.contracts.capability import CapabilityIdentity
from pml_common.contracts.learner import (
    ExecutionTrace,
    Feedback,
    FeedbackPage,
    FindTrace,
    GiveFeedback,
    ListFeedback,
    ListToolUsage,
    ListTraces,
    ToolUsagePage,
    TracePage,
)
from pml_common.contracts.scope import Scope
from pml_learner.domain.lesson import Experience, Lesson, ScopedCapability
from pml_learner.domain.retention import Retention
from pml_learner.domain.tool_usage import Calls, UsedTool


class AlreadyStored(Exception):
    """A trace of this id was stored with another message, maybe in another month: a workflow has
    one run, and a run one end."""

    def __init__(self, trace_id: UUID) -> None:
        super().__init__(f"trace {trace_id} is stored already")


class LearningBatch(Protocol):
    """The transaction that handles several messages: its changes are applied once or not at all."""

    @property
    def replayed(self) -> Mapping[UUID, Sequence[Message]]:
        """The messages published after each message of the batch that was handled before."""
        ...

    async def experience_of(
        self, capabilities: Mapping[ScopedCapability, CapabilityIdentity]
    ) -> Mapping[ScopedCapability, Experience]:
        """Read and lock the experience of each capability until the transaction ends; once in a
        transaction."""
        ...

    async def save(self, lessons: Sequence[Lesson], calls: Mapping[UsedTool, Calls]) -> None:
        """Store the traces, callers first, and the last experience of each capability, and count
        the calls. The end of the batch raises AlreadyStored."""
        ...

    def conclude(self, facts: Mapping[UUID, Sequence[Message]]) -> Mapping[UUID, Sequence[Message]]:
        """Store what to publish after each message, so that a redelivery publishes the same; return
        it with what was published earlier."""
        ...


class TraceStore(Protocol):
    """Traces and learning. Every method may raise StorageUnavailable."""

    async def make_room(self, times: Iterable[float]) -> None:
        """Make room for traces of these times, in milliseconds; a batch stores none of a month that
        has none. Idempotent."""
        ...

    def batch(
        self, message_ids: Collection[UUID], consumer: str
    ) -> AbstractAsyncContextManager[LearningBatch]:
        """Handle messages exactly once under redelivery; an error in the block rolls back."""
        ...

    async def traces(self, query: ListTraces) -> TracePage:
        """Return traces of a capability, a workflow, an intent or the whole scope, in the order
        that is asked for. Raises BadCursor."""
        ...

    async def trace(self, query: FindTrace) -> ExecutionTrace | None:
        """Return one trace; None where the scope has none of this id."""
        ...

    async def usage(self, query: ListToolUsage) -> ToolUsagePage:
        """Return the counted calls of tools, the most called first. Raises BadCursor."""
        ...

    async def judge(self, given: GiveFeedback) -> Feedback | None:
        """Store an opinion of a workflow's run, in place of the same principal's earlier one, and
        return all of its capability; None where no run of this workflow is stored."""
        ...

    async def judged(self, query: ListFeedback) -> FeedbackPage:
        """Return the opinions of capabilities, the most often judged first. Raises
        BadCursor."""
        ...

    async def erase(self, scope: Scope, workflow_id: UUID) -> None:
        """Delete the traces of a workflow, and the comments on it; keep none that come later. What
        was learned stays; a repetition changes nothing."""
        ...

    async def scopes(self) -> Sequence[Scope]:
        """Return the scopes that learn."""
        ...

    async def forget(self, scope: Scope, before: datetime, limit: int) -> int:
        """Delete the traces of at most `limit` old workflows of a scope, those with a trace from
        before this time, and return their number; what was learned stays."""
        ...

    async def drop_months(self, retention: Retention, now: datetime) -> None:
        """Delete the traces of the months of which no scope keeps any; what was learned stays."""
        ...
