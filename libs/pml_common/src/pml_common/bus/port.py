"""Interface of the bus. `NatsBus` and `MemoryBus` pass one contract suite."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypeVar
from uuid import UUID

from pml_common.bus.errors import Unreadable
from pml_common.contracts.base import Contract, Message, Query
from pml_common.contracts.catalog import (
    Consumer,
    DeadLetterConsumer,
    MessageType,
    QueryType,
    Service,
)
from pml_common.contracts.scope import Scope
from pml_common.outages import Outage

M = TypeVar("M", bound=Message)
Q = TypeVar("Q", bound=Query)
R = TypeVar("R", bound=Contract)

Handler = Callable[[M], Awaitable[Sequence[Message]]]
"""Handles one delivery and returns what to publish; the bus publishes, then acknowledges.

May run twice for one message. Raises `Retryable` or `Rejected`; anything else it raises counts as
a bug: retried with the consumer's delays, dead-lettered after its last delivery.
"""


@dataclass(frozen=True)
class Handled:
    """The outcome of a batch, by message id: what to publish after a message (what follows from
    several is listed under one of them), and the errors of messages that could not be handled, each
    treated as if it had been raised for that message alone."""

    facts: Mapping[UUID, Sequence[Message]] = field(default_factory=dict[UUID, Sequence[Message]])
    failed: Mapping[UUID, Exception] = field(default_factory=dict[UUID, Exception])


BatchHandler = Callable[[Sequence[M]], Awaitable[Handled]]
"""Handles messages with different ids together; the bus publishes the facts, then acknowledges.

May run twice for any of them, then in other batches. If it raises, it is called again for each
message alone, and an error then concerns that message as it does in a `Handler`.
"""


EntityFilter = Callable[[Scope, str], bool]
"""Returns whether messages about this entity are wanted now."""


@dataclass(frozen=True)
class StoredMessage:
    """A stored message, its sequence in its stream, and the server's time of storing."""

    sequence: int
    stored_at: datetime
    message: Message


def without_foreign(found: Sequence[StoredMessage | Unreadable]) -> list[StoredMessage]:
    """Return the messages, without foreign ones. Raises the first other Unreadable."""
    for each in found:
        if isinstance(each, Unreadable) and not each.is_foreign:
            raise each
    return [each for each in found if isinstance(each, StoredMessage)]


@dataclass(frozen=True)
class DeadMessage:
    """A message that its sender published and a consumer dead-lettered."""

    consumer: str
    message_id: str
    scope: Scope
    entity: str
    reason: str


DeadLetterHandler = Callable[[DeadMessage], Awaitable[Sequence[Message]]]
"""Handles one dead letter and returns what to publish; may run twice for the same one."""


class Publisher(Protocol):
    """Publishes messages."""

    async def publish(self, message: Message) -> int:
        """Store a message and return its stream sequence; a second publish of the same
        `message_id` within the server's window stores nothing and returns the first sequence. A
        `Signal` is not stored, nor known to be heard (0).

        A `JournalAppend` is stored only if its `previous` is the sequence of the last event of its
        owner about its entity, of whatever type (0: none yet); without `previous`, always. A
        message that is kept until it is handled is stored only if there is none like it about its
        entity, nor was within the window. Raises Fenced; BusUnavailable also if the server has only
        earlier messages.
        """
        ...


class QueryClient(Protocol):
    """Sends queries to their owners."""

    async def request(self, query_type: QueryType[Q, R], query: Q, *, timeout: float = 5.0) -> R:
        """Send a query and wait for the reply, at most `timeout` seconds. Raises QueryFailed."""
        ...


EventsOf = MessageType[Message] | Service
"""The events of one type, or all of one owner."""


class Journal(Protocol):
    """Reads the stored messages about one entity."""

    async def history(
        self, scope: Scope, entity: str, *, of: EventsOf | None = None
    ) -> Sequence[StoredMessage]:
        """Return the stored events about one entity, oldest first: of one message type or one owner
        (then sequences are comparable), else of every owner, by time stored; without foreign
        messages (see Unreadable). Raises Unreadable, BusUnavailable."""
        ...

    async def salvage(
        self, of: EventsOf, scope: Scope, entity: str
    ) -> Sequence[StoredMessage | Unreadable]:
        """Return the `history` of one type or owner, with an Unreadable in place of each message
        that is foreign or cannot be read. Raises BusUnavailable."""
        ...


class KeyValueCache(Protocol):
    """Small values under keys, shared by all services, each with a time to live."""

    async def put(self, key: str, value: bytes, ttl_s: float) -> None:
        """Store a value for `ttl_s` seconds (whole ones, at most a week), replacing the key's
        value; a key is tokens of letters, digits, `-`, `_` and `=`, separated by dots. Raises
        BusUnavailable."""
        ...

    async def get(self, key: str) -> bytes | None:
        """Return the value of a key; None if it is missing, deleted or expired. Raises
        BusUnavailable."""
        ...

    async def delete(self, key: str) -> None:
        """Delete the value of a key, if it has one. Raises BusUnavailable."""
        ...

    async def count(self, prefix: str) -> int:
        """Count the keys of one more token than `prefix`; one that was just deleted may count for a
        second. Raises BusUnavailable."""
        ...


class Bus(Publisher, QueryClient, Journal, KeyValueCache, Protocol):
    """The whole bus, as a composition root gets it."""

    async def consume(self, consumer: Consumer[M], handler: Handler[M]) -> None:
        """Start handling a durable consumer's messages until `drain`."""
        ...

    async def consume_batches(self, consumer: Consumer[M], handler: BatchHandler[M]) -> None:
        """Start handling a durable consumer's messages in batches of its `batch`, until `drain`.
        Messages delivered before, which may be what a batch failed on, are handled apart from new
        ones. Raises ValueError for a consumer without `batch`."""
        ...

    async def consume_dead_letters(
        self, consumer: DeadLetterConsumer, handler: DeadLetterHandler
    ) -> None:
        """Start handling the dead letters of all consumers, until `drain`. Skips a message that its
        sender did not publish: a dead-lettered forgery must have no effect."""
        ...

    async def listen(
        self,
        message_type: MessageType[M],
        handler: Callable[[M], Awaitable[None]],
        *,
        wants: EntityFilter | None = None,
    ) -> None:
        """Receive every message of a type in this replica, at most once, from now until `drain`;
        for state that can be recomputed (caches, notifications). With `wants`, only messages about
        entities for which it returns true; the others are not decoded."""
        ...

    async def serve(
        self,
        query_type: QueryType[Q, R],
        handler: Callable[[Q], Awaitable[R]],
        *,
        scopes: Collection[Scope] | None = None,
    ) -> None:
        """Serve a query, shared among replicas, until `drain`; a `scoped` one for these `scopes`,
        or for all. The handler may raise QueryFailed."""
        ...

    def follow(
        self, scope: Scope, entity: str
    ) -> AbstractAsyncContextManager[AsyncIterator[Message]]:
        """Follow the live events about one entity, from every owner; none is missed once entered.
        A reader that leaves too many unread gets those queued so far, then Overrun."""
        ...

    async def drain(self, timeout: float = 10.0) -> None:
        """Stop receiving, finish what is being handled, then close; after `timeout` seconds cancel
        the handlers that still run and leave their messages to redelivery."""
        ...

    async def healthy(self) -> bool:
        """Return whether the server answers within a second."""
        ...

    def now(self) -> datetime:
        """Return the server's time, for timestamps that processes compare; unaffected by jumps of
        the local clock."""
        ...

    def outages(self) -> Sequence[Outage]:
        """Return the server's outages since we connected, oldest first; an ongoing one ends
        now."""
        ...

    async def refusal(self) -> str | None:
        """Return why a reachable server does not store what we publish, or None; tried now on each
        of our streams, within some seconds."""
        ...

    async def stalled(self) -> str | None:
        """Return which of our consumers have waited for the same message too long, or None; within
        some seconds. Skips what the server has lost. Raises BusUnavailable."""
        ...

    def unserved(self) -> str | None:
        """Return which of our consumers waited, when `stalled` last looked, for a message of a
        scope that this replica does not serve; None if none did."""
        ...

    async def shortfall(self) -> str | None:
        """Return in which respect our streams are stored less safely than configured; None if they
        are not, or it is unknown."""
        ...
