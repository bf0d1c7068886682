"""The durable consumers of one replica on a NATS server."""

import asyncio
import logging
from functools import partial
from typing import TypeVar

from nats.aio.client import Client
from nats.aio.msg import Msg

from pml_common.bus import measures, streams
from pml_common.bus.batch_delivery import BatchReceiver, batch_of
from pml_common.bus.codec import Envelope
from pml_common.bus.connection import server_errors
from pml_common.bus.consume import BatchLoop, PullLoop
from pml_common.bus.dead_letters import (
    DeadLetterReader,
    Fetch,
    build_dead_letter,
    store_dead_letter,
)
from pml_common.bus.delivery import Disposition, Receiver
from pml_common.bus.errors import NotProvisioned
from pml_common.bus.port import BatchHandler, DeadLetterHandler, Handler
from pml_common.bus.publish import NatsPublisher
from pml_common.bus.pulling import Puller, Source, StoreDeadLetter
from pml_common.bus.server_api import find
from pml_common.contracts.base import Message
from pml_common.contracts.catalog import Consumer, DeadLetterConsumer

log = logging.getLogger(__name__)

M = TypeVar("M", bound=Message)


class NatsConsumers:
    """Starts, restarts and stops pull loops."""

    def __init__(
        self,
        client: Client,
        receiver: Receiver,
        publisher: NatsPublisher,
    ) -> None:
        self._client = client
        self._receiver = receiver
        self._publisher = publisher
        self._loops: list[Puller] = []

    async def consume(self, consumer: Consumer[M], handler: Handler[M]) -> None:
        """Start handling messages one by one."""

        async def process(envelope: Envelope, deliveries: int) -> Disposition:
            return await self._receiver.handle(consumer, handler, envelope, deliveries)

        source = self._source(consumer, partial(self._store_letter, consumer))
        await self._start(consumer, PullLoop(source, process))

    async def consume_batches(self, consumer: Consumer[M], handler: BatchHandler[M]) -> None:
        """Start handling messages in batches. Raises ValueError for a consumer without `batch`."""
        batch, receiver = batch_of(consumer), BatchReceiver(self._receiver, consumer, handler)
        source = self._source(consumer, partial(self._store_letter, consumer))
        await self._start(consumer, BatchLoop(source, batch, receiver.handle))

    async def consume_dead_letters(
        self, consumer: DeadLetterConsumer, handler: DeadLetterHandler, fetch: Fetch
    ) -> None:
        """Start handling dead letters; `fetch` reads a stored message."""
        reader = DeadLetterReader(self._receiver, fetch)

        async def process(envelope: Envelope, deliveries: int) -> Disposition:
            return await reader.handle(consumer, handler, envelope, deliveries)

        async def drop_letter(message: Msg, envelope: Envelope, reason: str) -> None:
            log.error("a dead letter of %s is dropped: %s", envelope.subject, reason)

        await self._start(consumer, PullLoop(self._source(consumer, drop_letter), process))

    async def restart(self) -> None:
        """Request messages again after a lost connection."""
        for loop in self._loops:
            await loop.restart()

    async def stop(self, timeout: float) -> None:
        """Stop receiving; finish what is in progress, cancel it after `timeout`."""
        await asyncio.gather(*(loop.stop(timeout) for loop in self._loops))

    async def _store_letter(
        self, consumer: Consumer[Message], message: Msg, envelope: Envelope, reason: str
    ) -> None:
        deliveries = message.metadata.num_delivered
        letter = build_dead_letter(consumer, self._receiver.identity, envelope, reason, deliveries)
        await store_dead_letter(self._publisher, message, letter)

    def _source(
        self, consumer: Consumer[Message] | DeadLetterConsumer, store_letter: StoreDeadLetter
    ) -> Source:
        stream = streams.stream_of(consumer)

        async def recover() -> None:
            with server_errors(self._client, f"restore {consumer.durable}"):
                if await find(self._client, f"CONSUMER.INFO.{stream}.{consumer.durable}") is None:
                    raise NotProvisioned([f"{consumer.durable} does not exist"])

        return Source(self._client, stream, consumer, store_letter, recover)

    async def _start(self, consumer: Consumer[Message] | DeadLetterConsumer, loop: Puller) -> None:
        measures.expect(consumer.durable)
        with server_errors(self._client, f"consume {consumer.durable}"):
            await loop.start()
        self._loops.append(loop)
