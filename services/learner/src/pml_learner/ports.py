"""Ports of the learner's handlers."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from pml_common.contracts.base import Message
from pml_common.contracts.capability import CapabilityIdentity, Learning
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
from pml_learner.domain.opinions import Weights
from pml_learner.domain.relearning import Learned, StoredTrace
from pml_learner.domain.replay import PastRun, RunKey
from pml_learner.domain.retention import Retention
from pml_learner.domain.tool_usage import Calls, UsedTool


class AlreadyStored(Exception):
    """A trace of this id was stored with another message, maybe in another month: a workflow has
    one run, and a run one end."""

    def __init__(self, trace_id: UUID) -> None:
        super().__init__(f"trace {trace_id} is stored already")


@dataclass(frozen=True)
class Past:
    """The newest runs of a capability, and the values learned from all."""

    capability: ScopedCapability
    learning: Learning
    runs: Mapping[RunKey, PastRun]


class LearningBatch(Protocol):
    """The transaction that handles several messages: its changes are applied once or not at all."""

    @property
    def replayed(self) -> Mapping[UUID, Sequence[Message]]:
        """The messages published after each message of the batch that was handled before."""
        ...

    async def deleted_among(
        self, workflows: Collection[tuple[Scope, UUID]]
    ) -> Collection[tuple[Scope, UUID]]:
        """Return the workflows whose data was deleted, and hold back further deletions until the
        transaction ends; before `experience_of`."""
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


class Relearning(Protocol):
    """The transaction that learns a capability's traces again, or deletes them; live learning of
    the capability waits for its end."""

    learned: Learned

    async def traces(self, after: int, up_to: int, limit: int) -> Sequence[StoredTrace]:
        """Return the first traces after a position, in the order of positions."""
        ...

    async def put(self, learned: Learned) -> None:
        """Store what was learned."""
        ...


class TraceStore(Protocol):
    """Traces and learning. Every method may raise StorageUnavailable."""

    async def make_room(self, times: Iterable[float]) -> None:
        """Make room for traces of these times, in milliseconds; a batch stores none of a month that
        has none. Idempotent."""
        ...

    async def know_months(self) -> None:
        """Let the store find out how the traces of new months are best looked up."""
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

    async def weights(self, scope: Scope, workflow_id: UUID) -> Weights | None:
        """Return what the opinions of a workflow's run weigh: each principal's first
        WEIGHED_OF_ONE_HOUR of an hour 1, the others 0. None without opinions."""
        ...

    async def judged(self, query: ListFeedback) -> FeedbackPage:
        """Return the opinions of capabilities, the most often judged first. Raises
        BadCursor."""
        ...

    def relearning(
        self, capability: ScopedCapability
    ) -> AbstractAsyncContextManager[Relearning | None]:
        """Lock what a capability learned; None where nothing is known of it."""
        ...

    async def stale(self, rule_version: int, limit: int) -> Sequence[ScopedCapability]:
        """Return capabilities of all scopes to learn again: by older rules, or without some
        lessons, or with a rebuild that is to be published."""
        ...

    async def capabilities(
        self, scope: Scope, after: UUID | None, limit: int
    ) -> tuple[Sequence[UUID], int]:
        """Return the first capabilities with runs after an id, in the order of ids, and the number
        of all of them."""
        ...

    async def unfolded(
        self, scope: Scope, workflows: Collection[UUID]
    ) -> Mapping[ScopedCapability, int]:
        """Return the last position, of each capability, among the workflows' traces that are not in
        its base yet."""
        ...

    async def unfolded_of_months(
        self, retention: Retention, now: datetime
    ) -> Mapping[ScopedCapability, int]:
        """Return the same of the months of which no scope keeps any."""
        ...

    async def note_deletion(self, scope: Scope, workflow_id: UUID) -> None:
        """Keep no trace of a workflow that comes later, and delete the comments on it; a repetition
        changes nothing."""
        ...

    async def past(self, after: ScopedCapability | None, limit: int) -> Past | None:
        """Return up to `limit` runs of the next capability with any, in a fixed order; None after
        the last."""
        ...

    async def refresh(
        self, capability: ScopedCapability, priorities: Mapping[RunKey, float]
    ) -> None:
        """Set the priorities of runs of a capability; those that are gone are left out.
        Idempotent."""
        ...

    async def scopes(self) -> Sequence[Scope]:
        """Return the scopes that learn."""
        ...

    async def old(self, scope: Scope, before: datetime, limit: int) -> Sequence[UUID]:
        """Return workflows of a scope with a trace from before this time, at most `limit`."""
        ...

    async def of_principal(
        self, scope: Scope, principal: str, before: datetime, limit: int
    ) -> Sequence[UUID]:
        """Return at most `limit` workflows of a principal with a trace from before this time."""
        ...

    async def drop_opinions(self, scope: Scope, principal: str, before: datetime) -> None:
        """Delete a principal's opinions from before this time. Idempotent."""
        ...

    async def remove(self, scope: Scope, workflows: Collection[UUID]) -> None:
        """Delete the traces of workflows; what they taught is to be in bases before."""
        ...

    async def drop_months(self, retention: Retention, now: datetime) -> None:
        """Delete the traces of the months of which no scope keeps any; what they taught is to be in
        bases before."""
        ...
