"""The pull loops: of single messages and of batches, never more messages than can be handled."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from typing_extensions import override

from pml_common.bus import measures
from pml_common.bus.batch_delivery import Delivery
from pml_common.bus.client import publish_empty
from pml_common.bus.codec import Envelope
from pml_common.bus.connection import envelope_of
from pml_common.bus.delivery import Disposition, Done
from pml_common.bus.errors import BusError
from pml_common.bus.pulling import Puller, Source
from pml_common.bus.tasks import finish
from pml_common.contracts.catalog import Batch

log = logging.getLogger(__name__)

Process = Callable[[Envelope, int], Awaitable[Disposition]]
ProcessBatch = Callable[[Sequence[Delivery]], Awaitable[None]]

_BATCHES_AT_ONCE = 2
_BUSY_FROM = 2
"""The number of messages in a batch's time from which fetching them costs less than waiting for
each; until none is found."""
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
        measures.pending.set(message.metadata.num_pending, self._consumer.durable)
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
    """Handles messages in batches, of what is stored when it asks.

    While messages are rare, a request for one is pending, and each is handled as it comes, with
    those that are stored by then. Once `_BUSY_FROM` come within the batch's time, and until none
    does, no request is pending: everything is fetched once in that time, so that process and server
    are woken for a batch and not for a message. Acknowledgements are sent with the next request.
    """

    def __init__(self, source: Source, batch: Batch, process: ProcessBatch) -> None:
        super().__init__(source)
        self._batch = batch
        self._process = process
        self._arrived: list[Msg] = []
        self._changed = asyncio.Event()
        self._stopped = asyncio.Event()
        self._arrivals: deque[float] = deque(maxlen=_BUSY_FROM)
        self._busy = False
        self._more = False
        self._asked_at = 0.0
        self._loop: asyncio.Task[None] | None = None
        self._awaited: asyncio.Task[None] | None = None

    @override
    async def start(self) -> None:
        await super().start()
        self._loop = asyncio.create_task(self._run())

    @override
    async def stop(self, timeout: float) -> None:
        self._stopping = True
        self._stopped.set()
        self._changed.set()
        if self._loop is not None:
            await finish([self._loop], timeout)
        await super().stop(timeout)

    @override
    async def _request_messages(self) -> None:
        """Let the loop request again: a request was answered or lost."""
        self._changed.set()

    @override
    def _accept(self, message: Msg) -> None:
        self._arrived.append(message)
        if not self._requested:
            self._changed.set()

    async def _run(self) -> None:
        while not self._stopping:
            await (self._poll() if self._busy else self._wait_for_first())
            await self._handle_arrived()

    async def _wait_for_first(self) -> None:
        """Wait for a message, then fetch those that are known to be stored."""
        while not self._arrived and not self._stopping:
            self._changed.clear()
            await self._request(1)
            await self._changed.wait()
        if self._arrived and self._arrived[0].metadata.num_pending:
            await self._fetch(self._batch.most - len(self._arrived))

    async def _poll(self) -> None:
        """Fetch what is stored, once in the batch's time or at once if more is known to be."""
        pause = self._asked_at + self._batch.within_s - asyncio.get_running_loop().time()
        if pause > 0 and not self._more:
            await _happened(self._stopped, pause)
        await self._fetch(self._batch.most)

    async def _fetch(self, count: int) -> None:
        self._asked_at = asyncio.get_running_loop().time()
        if count <= 0:
            return
        self._changed.clear()
        await self._request(count, waiting=False)
        while self._requested and not self._stopping:
            if not await _happened(self._changed, _REPLY_WITHIN_S):
                log.warning("%s: a request was not answered", self._consumer.durable)
                self._requested = 0

    async def _handle_arrived(self) -> None:
        """Handle what arrived; go on when that is done, or has taken the batch's time and does not
        exceed what may be handled at once."""
        messages, self._arrived = self._arrived, []
        self._adapt(messages)
        if not messages:
            return
        self._awaited = task = asyncio.create_task(self._handle(messages))
        self._in_progress[task] = messages
        task.add_done_callback(self._remove)
        await asyncio.wait([task], timeout=self._batch.within_s)
        self._awaited = None
        while len(self._in_progress) >= _BATCHES_AT_ONCE and not self._stopping:
            await asyncio.wait(self._in_progress, return_when=asyncio.FIRST_COMPLETED)

    def _adapt(self, messages: Sequence[Msg]) -> None:
        """Choose between waiting and polling by how many messages come in the batch's time."""
        now = asyncio.get_running_loop().time()
        self._arrivals.extend([now] * min(len(messages), _BUSY_FROM))
        many = len(self._arrivals) == _BUSY_FROM
        often = many and now - self._arrivals[0] <= self._batch.within_s
        self._busy = often or (self._busy and bool(messages))
        pending = messages[-1].metadata.num_pending if messages else 0
        self._more = pending > 0
        measures.pending.set(pending, self._consumer.durable)

    async def _handle(self, messages: Sequence[Msg]) -> None:
        try:
            batch = [Delivery(envelope_of(each), each.metadata.num_delivered) for each in messages]
            await self._process(batch)
            await self._settle_all(messages, batch)
        except asyncio.CancelledError:
            for message in messages:
                await message.nak()
            raise
        except (BusError, NatsError) as error:
            log.warning("%s: left to redelivery: %s", self._consumer.durable, error)

    async def _settle_all(self, messages: Sequence[Msg], batch: Sequence[Delivery]) -> None:
        """Acknowledge what was handled, together with the next request if the loop is about to send
        one; then settle the others."""
        settled = list(zip(messages, batch, strict=True))
        done = [message.reply for message, each in settled if isinstance(each.outcome, Done)]
        later = self._awaited is asyncio.current_task() and not self._stopping
        await publish_empty(self._client, done, later=later)
        for message, each in settled:
            if not isinstance(each.outcome, Done):
                await self._settle(message, each.outcome)


async def _happened(event: asyncio.Event, within_s: float) -> bool:
    """Wait for an event; return whether it came in time, and clear it."""
    try:
        async with asyncio.timeout(within_s):
            await event.wait()
    except TimeoutError:
        return False
    event.clear()
    return True
