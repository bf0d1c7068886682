"""Handling of batches and the disposition of each message; shared by NatsBus and MemoryBus."""

import asyncio
import logging
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Generic, TypeVar
from uuid import UUID

from opentelemetry.trace import INVALID_SPAN, Span

from pml_common.bus import measures, names, tracing
from pml_common.bus.codec import Envelope
from pml_common.bus.delivery import Disposition, Done, Receiver, dispose
from pml_common.bus.port import BatchHandler, Handled
from pml_common.contracts.base import Message
from pml_common.contracts.catalog import Batch, Consumer
from pml_common.telemetry import vocabulary

log = logging.getLogger(__name__)

M = TypeVar("M", bound=Message)


@dataclass
class Delivery:
    """One delivery, its number counted from 1, and what becomes of it."""

    envelope: Envelope
    number: int
    outcome: Disposition = field(default_factory=Done)


@dataclass(frozen=True)
class _Opened(Generic[M]):
    """A message and its deliveries in one batch: more than one if it was published twice."""

    message: M
    deliveries: list[Delivery]


def batch_of(consumer: Consumer[Message]) -> Batch:
    """Return the bounds of a consumer's batches. Raises ValueError if it has none."""
    if consumer.batch is None:
        raise ValueError(f"{consumer.durable} takes its messages one by one")
    return consumer.batch


class BatchReceiver(Generic[M]):
    """Verifies, decodes and handles the batches of one consumer."""

    def __init__(self, receiver: Receiver, consumer: Consumer[M], handler: BatchHandler[M]) -> None:
        self._receiver = receiver
        self._consumer = consumer
        self._handler = handler
        self._destination = names.prefix_of(consumer.message)
        self._slots = asyncio.Semaphore(consumer.max_in_flight)

    async def handle(self, batch: Sequence[Delivery]) -> None:
        """Handle deliveries, publish what follows, and set the outcome of each."""
        began = monotonic()
        # A message that fails each time must not make those fail together that come with it.
        parts = ([each for each in batch if each.number == 1], [e for e in batch if e.number > 1])
        await asyncio.gather(*(self._handle_part(part) for part in parts if part))
        measures.count_batch(self._consumer.durable, batch, began)

    async def _handle_part(self, deliveries: Sequence[Delivery]) -> None:
        opened = await self._open(deliveries)
        if len(opened) == 1:
            await self._handle_alone(opened[0])
        elif opened and (handled := await self._handle_together(opened)) is not None:
            await asyncio.gather(*(self._conclude(each, handled) for each in opened))
        else:
            await asyncio.gather(*(self._handle_alone(each) for each in opened))

    async def _open(self, deliveries: Sequence[Delivery]) -> Sequence[_Opened[M]]:
        """Return the messages that can be read and believed; set the outcome of the others."""
        opened: dict[UUID, _Opened[M]] = {}
        for delivery in deliveries:
            with self._disposing([delivery], INVALID_SPAN):
                envelope = delivery.envelope
                message = await self._receiver.open_stored(self._consumer.message, envelope)
                first = opened.setdefault(message.message_id, _Opened(message, []))
                first.deliveries.append(delivery)
        return list(opened.values())

    async def _handle_together(self, opened: Sequence[_Opened[M]]) -> Handled | None:
        """Handle several messages; log a failure and return None."""
        headers = [each.deliveries[0].envelope.headers for each in opened]
        name, durable = self._consumer.message.name, self._consumer.durable
        with tracing.receiving_batch(name, self._destination, headers) as span:
            span.set_attribute(vocabulary.CONSUMER_GROUP, durable)
            try:
                return await self._call(opened)
            except Exception as error:
                tracing.mark_failed(span, error)
                what = f"{durable}: {len(opened)} messages together"
                log.warning("%s failed; handling each alone", what, exc_info=error)
                return None

    async def _handle_alone(self, opened: _Opened[M]) -> None:
        async with self._slots:
            with self._receiving(opened):
                await self._publish(opened, await self._call([opened]))

    async def _conclude(self, opened: _Opened[M], handled: Handled) -> None:
        """Publish the facts of one message of a batch, or set the outcome of its error."""
        message_id = opened.message.message_id
        if handled.facts.get(message_id) or message_id in handled.failed:
            async with self._slots:
                with self._receiving(opened):
                    await self._publish(opened, handled)

    async def _call(self, opened: Sequence[_Opened[M]]) -> Handled:
        handled = await self._handler([each.message for each in opened])
        unknown = handled.facts.keys() - {each.message.message_id for each in opened}
        if unknown:  # they would never be published
            raise ValueError(f"{self._consumer.durable}: facts of messages not in the batch")
        return handled

    async def _publish(self, opened: _Opened[M], handled: Handled) -> None:
        """Publish the facts of a message. Raises the message's own error, if any."""
        failure = handled.failed.get(opened.message.message_id)
        if failure is not None:
            raise failure
        for fact in handled.facts.get(opened.message.message_id, ()):
            await self._receiver.publish(fact)

    @contextmanager
    def _receiving(self, opened: _Opened[M]) -> Generator[None]:
        """Handle one message inside; an error sets the outcome of its deliveries."""
        name, headers = self._consumer.message.name, opened.deliveries[0].envelope.headers
        with tracing.receiving("handle", name, self._destination, headers) as span:
            span.set_attribute(vocabulary.CONSUMER_GROUP, self._consumer.durable)
            with self._disposing(opened.deliveries, span):
                yield

    @contextmanager
    def _disposing(self, deliveries: Sequence[Delivery], span: Span) -> Generator[None]:
        try:
            yield
        except Exception as error:
            tracing.mark_failed(span, error)
            for each in deliveries:
                each.outcome = dispose(error, self._consumer, each.number)
                what = (
                    f"{self._consumer.durable}: delivery {each.number} of {each.envelope.subject}"
                )
                log.warning("%s failed: %s", what, each.outcome, exc_info=error)
