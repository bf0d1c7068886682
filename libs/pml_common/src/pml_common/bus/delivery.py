"""Handling of received messages and its dispositions; shared by NatsBus and MemoryBus."""

import logging
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from time import monotonic
from typing import TypeVar

from pml_common.bus import codec, measures, names, tracing
from pml_common.bus.codec import Envelope, Payloads
from pml_common.bus.errors import (
    Fenced,
    NotBelieved,
    QueryFailed,
    Rejected,
    Retryable,
    ServedElsewhere,
    Unreadable,
)
from pml_common.bus.identity import Identity
from pml_common.bus.port import Handler, StoredMessage
from pml_common.contracts.base import Contract, Message, Query
from pml_common.contracts.catalog import Consumer, DeliveryOptions, MessageType, QueryType
from pml_common.contracts.fault_words import text_of
from pml_common.telemetry import vocabulary

log = logging.getLogger(__name__)

M = TypeVar("M", bound=Message)
Q = TypeVar("Q", bound=Query)
R = TypeVar("R", bound=Contract)


@dataclass(frozen=True)
class Done:
    """Handled, its messages published: acknowledge."""


@dataclass(frozen=True)
class Retry:
    """Redeliver after `delay_s`."""

    delay_s: float


@dataclass(frozen=True)
class DeadLetter:
    """Store as a dead letter and never redeliver."""

    reason: str


@dataclass(frozen=True)
class Leave:
    """Taken over by another replica: neither acknowledge nor reject."""


_deliveries: ContextVar[int] = ContextVar("deliveries", default=0)


def deliveries() -> int:
    """Return how many times the message that is being handled was delivered, this time included; 0
    outside of a handler. A server that loses its state counts from 1 again."""
    return _deliveries.get()


_UNREADABLE_TRIES = 3
"""Few: only a lagging replica makes a message unreadable temporarily."""

_ELSEWHERE_S = 0.05
"""First delay of a message for another replica; it doubles up to the consumer's longest."""

Disposition = Done | Retry | DeadLetter | Leave


def dispose(error: Exception, consumer: DeliveryOptions, deliveries: int) -> Disposition:
    """Return the disposition of a delivery whose handler raised; `deliveries` counts from 1."""
    if isinstance(error, Fenced):
        return Leave()
    if isinstance(error, Rejected):
        return DeadLetter(str(error))
    # A missing dependency may be missing for long; a bug stays the same on every delivery.
    foreseen = isinstance(error, Retryable)
    limit = consumer.max_deliver if foreseen else min(consumer.max_failures, consumer.max_deliver)
    if isinstance(error, Unreadable):
        limit = min(limit, _UNREADABLE_TRIES)
    if deliveries >= limit:
        reason = f"{type(error).__name__}: {text_of(error)}"
        return DeadLetter(f"{reason} (delivery {deliveries} of {limit})")
    delays = consumer.retry_delays_s
    if isinstance(error, ServedElsewhere):
        return Retry(min(_ELSEWHERE_S * 2 ** (deliveries - 1), delays[-1]))
    return Retry(delays[min(deliveries, len(delays)) - 1])


@dataclass(frozen=True)
class Receiver:
    """Verifies, decodes and handles what one replica receives."""

    payloads: Payloads
    identity: Identity
    publish: Callable[[Message], Awaitable[object]]

    async def handle(
        self, consumer: Consumer[M], handler: Handler[M], envelope: Envelope, deliveries: int
    ) -> Disposition:
        """Handle a delivery and publish the returned messages; errors become a disposition."""
        began = monotonic()
        outcome = await self._handle(consumer, handler, envelope, deliveries)
        measures.count_message(consumer.durable, outcome, deliveries, began)
        return outcome

    async def _handle(
        self, consumer: Consumer[M], handler: Handler[M], envelope: Envelope, deliveries: int
    ) -> Disposition:
        headers = envelope.headers
        _deliveries.set(deliveries)  # each delivery is handled in a task of its own
        destination = names.prefix_of(consumer.message)
        with tracing.receiving("handle", consumer.message.name, destination, headers) as span:
            span.set_attribute(vocabulary.CONSUMER_GROUP, consumer.durable)
            try:
                for message in await handler(await self.open_signed(consumer.message, envelope)):
                    await self.publish(message)
            except Exception as error:
                tracing.mark_failed(span, error)
                outcome = dispose(error, consumer, deliveries)
                what = f"{consumer.durable}: delivery {deliveries} of {envelope.subject}"
                if isinstance(error, ServedElsewhere) and isinstance(outcome, Retry):
                    log.debug("%s: %s", what, error)
                else:
                    log.warning("%s failed: %s", what, outcome, exc_info=error)
                return outcome
        return Done()

    async def handle_broadcast(
        self,
        message_type: MessageType[M],
        handler: Callable[[M], Awaitable[None]],
        envelope: Envelope,
    ) -> None:
        """Handle a message received at most once; errors are logged."""
        destination = names.prefix_of(message_type)
        with tracing.receiving("hear", message_type.name, destination, envelope.headers) as span:
            try:
                await handler(await self.open_signed(message_type, envelope))
            except Exception as error:
                tracing.mark_failed(span, error)
                log.exception("%s was received but not handled", envelope.subject)

    async def answer(
        self,
        query_type: QueryType[Q, R],
        handler: Callable[[Q], Awaitable[R]],
        envelope: Envelope,
        headers: dict[str, str],
        inline_limit: int = codec.INLINE_LIMIT,
    ) -> bytes:
        """Handle a query and return the body to send, signed if its type requires it; adds to
        `headers`. A body of more than `inline_limit` bytes goes to the store. Raises QueryFailed
        for every failure of the handler, BusUnavailable while that store is away."""
        with measures.serving(query_type.name):
            return await self._answer(query_type, handler, envelope, headers, inline_limit)

    async def _answer(
        self,
        query_type: QueryType[Q, R],
        handler: Callable[[Q], Awaitable[R]],
        envelope: Envelope,
        headers: dict[str, str],
        inline_limit: int,
    ) -> bytes:
        with tracing.receiving(
            "serve", query_type.name, envelope.subject, envelope.headers
        ) as span:
            try:
                try:
                    codec.require_query_signature(query_type, envelope, self.identity)
                    query = await self.open(query_type.model, envelope)
                    codec.require_own_scope(query_type, query, envelope)
                except Rejected as error:
                    raise QueryFailed("invalid", str(error)) from error
                data = codec.encode(await handler(query))
            except QueryFailed as failure:
                tracing.mark_failed(span, failure)
                raise
            except Exception as error:
                tracing.mark_failed(span, error)
                log.exception("%s failed", query_type.name)
                why = f"{type(error).__name__}: {text_of(error)}"
                raise QueryFailed("internal", why) from error
        codec.sign_reply(query_type, envelope, data, headers, self.identity)
        return await codec.check_in(data, headers, self.payloads, inline_limit)

    async def seal_query(
        self,
        query_type: QueryType[Query, Contract],
        query: Query,
        headers: dict[str, str],
        inline_limit: int = codec.INLINE_LIMIT,
    ) -> Envelope:
        """Encode a query for sending (`codec.seal_query`)."""
        return await codec.seal_query(
            query_type, query, headers, self.payloads, self.identity, inline_limit
        )

    async def receive_broadcast(self, envelope: Envelope) -> Message | None:
        """Return the message; None, and log a warning, if it cannot be read."""
        try:
            return await self._known(envelope)
        except Rejected as error:
            log.warning("%s cannot be followed: %s", envelope.subject, error)
            return None

    async def record(
        self, envelope: Envelope, sequence: int, stored_at: datetime
    ) -> StoredMessage | None:
        """Return a stored message; None for an unknown type or version. Raises Unreadable: a
        journal with a gap is worse than none."""
        try:
            message = await self._known(envelope)
        except Rejected as error:
            is_foreign = isinstance(error, NotBelieved)
            raise Unreadable(
                envelope.subject, sequence, str(error), is_foreign=is_foreign
            ) from error
        return None if message is None else StoredMessage(sequence, stored_at, message)

    async def _known(self, envelope: Envelope) -> Message | None:
        entry = codec.type_of_subject(envelope.subject)
        return None if entry is None else await self.open_signed(entry, envelope)

    async def open_signed(self, entry: MessageType[M], envelope: Envelope) -> M:
        """Verify the sender's signature and fence, and return the message. Raises Rejected."""
        codec.require_authentic(entry, envelope, self.identity)
        message = await self.open(entry.model, envelope)
        codec.require_own_fence(entry, message, envelope)
        return message

    async def open_reply(self, query_type: QueryType[Q, R], query: Envelope, reply: Envelope) -> R:
        """Return the decoded reply to this query. Raises QueryFailed if it cannot be read, or its
        owner has not signed it and must."""
        try:
            codec.require_reply_signature(query_type, query, reply, self.identity)
            return await self.open(query_type.reply, reply)
        except Rejected as error:
            raise QueryFailed("internal", f"{query_type.owner} answered: {error}") from error

    async def open(self, model: type[codec.C], envelope: Envelope) -> codec.C:
        """Return the decoded contract, its body fetched from the store if needed. Raises
        Rejected."""
        data = await codec.check_out(envelope.data, envelope.headers, self.payloads)
        return codec.decode(model, data)


def no_reply(query_type: QueryType[Query, Contract], why: str) -> QueryFailed:
    """Build the error for a query whose owner did not reply."""
    return QueryFailed("unavailable", f"{query_type.owner} {query_type.name}: {why}")
