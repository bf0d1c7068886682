"""Handling of received messages and its dispositions; shared by NatsBus and MemoryBus."""

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from time import monotonic
from typing import TypeVar

from pml_common.bus import codec, measures, names, tracing
from pml_common.bus.codec import Envelope, Payloads
from pml_common.bus.errors import (
    Fenced,
    NotBelieved,
    Rejected,
    Retryable,
    ServedElsewhere,
    Unreadable,
    Unsigned,
)
from pml_common.bus.identity import Identity
from pml_common.bus.port import Handler, StoredMessage
from pml_common.bus.unsettled import Unsettled
from pml_common.contracts.base import Message
from pml_common.contracts.catalog import Consumer, DeliveryOptions, MessageType
from pml_common.contracts.fault_words import text_of
from pml_common.telemetry import vocabulary

log = logging.getLogger(__name__)

M = TypeVar("M", bound=Message)


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
_MOST_DOUBLINGS = 20

Disposition = Done | Retry | DeadLetter | Leave


def dispose(error: Exception, consumer: DeliveryOptions, deliveries: int) -> Disposition:
    """Return the disposition of a delivery whose handler raised; `deliveries` counts from 1, of a
    consumer `in_scope` those alone that count."""
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
        return Retry(min(_ELSEWHERE_S * 2 ** min(deliveries, _MOST_DOUBLINGS) / 2, delays[-1]))
    return Retry(delays[min(deliveries, len(delays)) - 1])


@dataclass(frozen=True)
class Receiver:
    """Verifies, decodes and handles what one replica receives."""

    payloads: Payloads
    identity: Identity
    publish: Callable[[Message], Awaitable[object]]
    unsettled: Unsettled = field(default_factory=Unsettled)

    async def handle(
        self, consumer: Consumer[M], handler: Handler[M], envelope: Envelope, deliveries: int
    ) -> Disposition:
        """Handle a delivery and publish the returned messages; errors become a disposition."""
        began = monotonic()
        outcome = await self._handle(consumer, handler, envelope, deliveries)
        if consumer.in_scope and not isinstance(outcome, Retry):
            self.unsettled.settle(consumer.durable, *_known_by(envelope))
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
                for message in await handler(await self.open_stored(consumer.message, envelope)):
                    await self.publish(message)
            except Exception as error:
                tracing.mark_failed(span, error)
                counted = self._counted(error, consumer, envelope, deliveries)
                outcome = dispose(error, consumer, counted)
                what = f"{consumer.durable}: delivery {deliveries} of {envelope.subject}"
                if isinstance(error, ServedElsewhere) and isinstance(outcome, Retry):
                    log.debug("%s: %s", what, error)
                else:
                    log.warning("%s failed: %s", what, outcome, exc_info=error)
                return outcome
        return Done()

    def _counted(
        self, error: Exception, consumer: Consumer[M], envelope: Envelope, deliveries: int
    ) -> int:
        """Return the deliveries that count for an error; of a consumer `in_scope` not those to
        replicas of other scopes."""
        if not consumer.in_scope:
            return deliveries
        if isinstance(error, ServedElsewhere):
            self.unsettled.leave(consumer.durable, envelope.subject)
            return deliveries
        return self.unsettled.fail(consumer.durable, *_known_by(envelope))

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
            raise Unreadable(
                envelope.subject,
                sequence,
                str(error),
                is_foreign=isinstance(error, NotBelieved),
                unsigned=await self._unsigned(envelope) if isinstance(error, Unsigned) else None,
            ) from error
        return None if message is None else StoredMessage(sequence, stored_at, message)

    async def _unsigned(self, envelope: Envelope) -> Message | None:
        """Return what an append says that nobody signed, if it can be read."""
        entry = codec.type_of_subject(envelope.subject)
        if entry is None or not entry.is_fenced:
            return None
        with suppress(Rejected):
            message = await self.open(entry.model, envelope)
            codec.require_own_fence(entry, message, envelope)
            return message
        return None

    async def _known(self, envelope: Envelope) -> Message | None:
        entry = codec.type_of_subject(envelope.subject)
        return None if entry is None else await self.open_signed(entry, envelope)

    async def open_stored(self, entry: MessageType[M], envelope: Envelope) -> M:
        """Return what a durable consumer delivered, if a service has published it. Raises
        Rejected."""
        codec.require_published(envelope)
        return await self.open_signed(entry, envelope)

    async def open_signed(self, entry: MessageType[M], envelope: Envelope) -> M:
        """Verify the sender's signature and fence, and return the message. Raises Rejected."""
        codec.require_authentic(entry, envelope, self.identity)
        message = await self.open(entry.model, envelope)
        codec.require_own_fence(entry, message, envelope)
        return message

    async def open(self, model: type[codec.C], envelope: Envelope) -> codec.C:
        """Return the decoded contract, its body fetched from the store if needed. Raises
        Rejected."""
        return await codec.opened(model, envelope, self.payloads)


def _known_by(envelope: Envelope) -> tuple[str, str]:
    """Return the id of a message, by which its failures are counted, and its subject."""
    return envelope.headers.get(codec.MSG_ID, ""), envelope.subject
