"""The bus as services see it. `NatsBus` and `MemoryBus` pass one contract suite."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeVar

from pml_common.bus.errors import Unreadable
from pml_common.contracts.base import Contract, Message, Query
from pml_common.contracts.catalog import Consumer, DeadLetterConsumer, MessageType, QueryType
from pml_common.contracts.scope import Scope
from pml_common.outages import Outage

M = TypeVar("M", bound=Message)
Q = TypeVar("Q", bound=Query)
R = TypeVar("R", bound=Contract)

Handler = Callable[[M], Awaitable[Sequence[Message]]]
"""Handles one delivery and returns what to publish; the bus publishes, then acknowledges.

May run twice for one message. Raises `Retryable` or `Rejected`; anything else it raises counts as
a bug: retried with the consumer's delays, buried after its last delivery.
"""


Wants = Callable[[Scope, str], bool]
"""Whether messages about this entity are of interest now."""


@dataclass(frozen=True)
class Recorded:
    """A stored message, its sequence in its stream, and when the server stored it."""

    sequence: int
    stored_at: datetime
    message: Message


@dataclass(frozen=True)
class DeadMessage:
    """A message that its sender published and a consumer gave up for good; `message` is None where
    its body cannot be read."""

    consumer: str
    message_id: str
    scope: Scope
    entity: str
    message: Message | None
    reason: str


OnDeadMessage = Callable[[DeadMessage], Awaitable[Sequence[Message]]]
"""Handles one burial and returns what to publish; may run twice for one burial."""


class Publisher(Protocol):
    """What states facts."""

    async def publish(self, message: Message, *, expected_last: int | None = None) -> int:
        """Store a message and return its stream sequence; a second publish of the same
        `message_id` within the server's window stores nothing and returns the first sequence.

        With `expected_last`, store it only if that is the sequence of the last message on its
        subject (0: none yet). Raises Fenced; BusUnavailable also where the server knows only
        earlier ones.
        """
        ...


class QueryClient(Protocol):
    """What asks owners."""

    async def request(self, query_type: QueryType[Q, R], query: Q, *, timeout: float = 5.0) -> R:
        """Ask the owner and wait `timeout` seconds at most. Raises QueryFailed."""
        ...


class Journal(Protocol):
    """What reads the stored past of one entity."""

    async def history(
        self, scope: Scope, entity: str, *, of: MessageType[Message] | None = None
    ) -> Sequence[Recorded]:
        """Stored events about one entity, oldest first: of one message type (then sequences are
        comparable), else of every owner, by time stored. Raises Unreadable, BusUnavailable."""
        ...

    async def last_of(
        self, message_type: MessageType[Message], scope: Scope, entity: str
    ) -> Recorded | None:
        """The last stored message of a type about one entity; None without one. Raises
        Unreadable where it cannot be read, BusUnavailable."""
        ...

    async def salvage(
        self, message_type: MessageType[Message], scope: Scope, entity: str
    ) -> Sequence[Recorded | Unreadable]:
        """As `history` of one type, with each message that cannot be read told as such in its
        place. Raises BusUnavailable."""
        ...


class KeyValueCache(Protocol):
    """Small values under keys, shared by all services, each for a time."""

    async def put(self, key: str, value: bytes, ttl_s: float) -> None:
        """Keep a value for `ttl_s` seconds (whole ones, a week at most) instead of what the key
        had; a key is tokens of letters, digits, `-`, `_` and `=`, with dots between them. Raises
        BusUnavailable."""
        ...

    async def get(self, key: str) -> bytes | None:
        """What a key has; None once its time is over. Raises BusUnavailable."""
        ...


class Bus(Publisher, QueryClient, Journal, KeyValueCache, Protocol):
    """Everything a composition root needs."""

    async def consume(self, consumer: Consumer[M], handler: Handler[M]) -> None:
        """Start handling a durable consumer's messages until `drain`."""
        ...

    async def consume_dead_letters(
        self, consumer: DeadLetterConsumer, handler: OnDeadMessage
    ) -> None:
        """Start handling what all consumers give up, until `drain`. What its sender did not publish
        is passed over: a forgery that was buried says nothing of anybody's work."""
        ...

    async def listen(
        self,
        message_type: MessageType[M],
        handler: Callable[[M], Awaitable[None]],
        *,
        wants: Wants | None = None,
    ) -> None:
        """Hear every message of a type in this very replica, at most once, from now until `drain`;
        for what can be recomputed (caches, notifications). With `wants`, only those about what it
        returns true for; the others are not even decoded."""
        ...

    async def serve(
        self, query_type: QueryType[Q, R], handler: Callable[[Q], Awaitable[R]]
    ) -> None:
        """Answer a query, shared among replicas, until `drain`; the handler may raise
        QueryFailed."""
        ...

    def follow(
        self, scope: Scope, entity: str
    ) -> AbstractAsyncContextManager[AsyncIterator[Message]]:
        """Live events about one entity, from every owner; none is missed once entered. Whoever
        leaves too many unread gets those that are kept, and then Overrun."""
        ...

    async def drain(self, timeout: float = 10.0) -> None:
        """Take nothing new, finish what is being handled, then close; after `timeout` seconds
        what still runs is cancelled and left to redelivery."""
        ...

    async def healthy(self) -> bool:
        """Whether the server answers, within a second."""
        ...

    def now(self) -> datetime:
        """The server's time, for whatever other processes compare with theirs; jumps of our own
        clock do not change it."""
        ...

    def outages(self) -> Sequence[Outage]:
        """When the server did not answer since we connected, oldest first; one that goes on ends
        now."""
        ...

    async def refusal(self) -> str | None:
        """Why a server that is there does not store what we publish, tried now on each of our
        streams, within some seconds; else None."""
        ...

    async def shortfall(self) -> str | None:
        """In which respect our streams are kept less safely than configured; None where they are
        not, or nobody knows."""
        ...
