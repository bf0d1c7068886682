"""The pull loops: of single messages and of batches, never more messages than can be handled."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from typing_extensions import override

from pml_common.bus.batch_delivery import Delivery
from pml_common.bus.client import publish_empty
from pml_common.bus.codec import Envelope
from pml_common.bus.connection import envelope_of
from pml_common.bus.delivery import Disposition, Done
from pml_common.bus.errors import BusError
from pml_common.bus.pulling import Puller, Source
from pml_common.contracts.catalog import Batch

log = logging.getLogger(__name__)

Process = Callable[[Envelope, int], Awaitable[Disposition]]
ProcessBatch = Callable[[Sequence[Delivery]], Awaitable[None]]

_BATCHES_AT_ONCE = 2
_REPLY_WITHIN_S = 2.0


class PullLoop(Puller):
    """Handles each message as it comes: a request for as many as there are free slots is always
    pending. Those requested and those in progress never exceed `max_in_flight`, except right after
    a lost connection, when the slots limit what is handled.
    """

    def __init__(self, source: Source, process: Process) -> None:
        super().__init__(source)
        self._process = process
        self._slots = asyncio.Semaphore(source.consumer.max_in_flight)

    @override
    async def _request_messages(self) -> None:
        """Request as many messages as there are free slots, in few requests."""
        most = self._consumer.max_in_flight
        free = most - len(self._in_progress) - self._requested
        if free > 0 and (self._requested == 0 or free >= most // 2):
            await self._request(free)

    @override
    def _accept(self, message: Msg) -> None:
        task = asyncio.create_task(self._handle(message))
        self._in_progress[task] = (message,)
        task.add_done_callback(self._remove)

    async def _handle(self, message: Msg) -> None:
        try:
            async with self._slots:
                outcome = await self._process(envelope_of(message), message.metadata.num_delivered)
                await self._settle(message, outcome)
        except asyncio.CancelledError:
            await message.nak()
            raise
        except (BusError, NatsError) as error:
            log.warning("%s: left to redelivery: %s", self._consumer.durable, error)
        finally:
            if (task := asyncio.current_task()) is not None:
                self._remove(task)
            await self._request_messages()


class BatchLoop(Puller):
    """Handles messages in batches: a request for one message is pending; the others that are stored
    within the batch's time of its arrival are fetched in one request. So a process is woken, and
    the server asked, twice for a batch, and an idle consumer costs no more than a pull loop.
    """

    def __init__(self, source: Source, batch: Batch, process: ProcessBatch) -> None:
        super().__init__(source)
        self._batch = batch
        self._process = process
        self._gathered: list[Msg] | None = None
        self._complete = asyncio.Event()

    @override
    async def _request_messages(self) -> None:
        """Request the first message of a batch, unless one is gathered or enough are handled."""
        if self._gathered is not None:
            self._complete_if_all_came()
        elif not self._requested and len(self._in_progress) < _BATCHES_AT_ONCE:
            await self._request(1)

    @override
    async def stop(self, timeout: float) -> None:
        self._complete.set()
        await super().stop(timeout)

    @override
    def _accept(self, message: Msg) -> None:
        if self._gathered is not None:
            self._gathered.append(message)
            self._complete_if_all_came()
            return
        self._gathered = [message]
        task = asyncio.create_task(self._handle(self._gathered))
        self._in_progress[task] = self._gathered
        task.add_done_callback(self._remove)

    def _complete_if_all_came(self) -> None:
        if not self._requested:
            self._complete.set()

    async def _handle(self, gathered: list[Msg]) -> None:
        try:
            await self._gather(gathered)
            batch = [Delivery(envelope_of(each), each.metadata.num_delivered) for each in gathered]
            await self._process(batch)
            await self._settle_all(gathered, batch)
        except asyncio.CancelledError:
            for message in gathered:
                await message.nak()
            raise
        except (BusError, NatsError) as error:
            log.warning("%s: left to redelivery: %s", self._consumer.durable, error)
        finally:
            if (task := asyncio.current_task()) is not None:
                self._remove(task)
            await self._request_messages()

    async def _gather(self, gathered: list[Msg]) -> None:
        """Wait for the batch's time, unless enough messages are stored, then fetch the others."""
        missing = self._batch.most - 1
        if gathered[0].metadata.num_pending < missing:
            await self._completed(self._batch.within_s)
        if missing and not self._stopping:
            self._complete.clear()
            await self._request(missing, waiting=False)
            if self._requested and not await self._completed(_REPLY_WITHIN_S):
                log.warning("%s: the request was not answered", self._consumer.durable)
                self._requested = 0
        self._gathered = None
        self._complete.clear()
        await self._request_messages()

    async def _completed(self, within_s: float) -> bool:
        """Wait until the batch is complete; return whether it is."""
        try:
            async with asyncio.timeout(within_s):
                return await self._complete.wait()
        except TimeoutError:
            return False

    async def _settle_all(self, messages: Sequence[Msg], batch: Sequence[Delivery]) -> None:
        """Acknowledge what was handled, in one write; then settle the others."""
        settled = list(zip(messages, batch, strict=True))
        done = [message.reply for message, each in settled if isinstance(each.outcome, Done)]
        await publish_empty(self._client, done)
        for message, each in settled:
            if not isinstance(each.outcome, Done):
                await self._settle(message, each.outcome)
