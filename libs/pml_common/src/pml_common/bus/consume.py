"""The pull loop: always one request pending at the server, never more messages than requested."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError

from pml_common.bus.codec import Envelope
from pml_common.bus.connection import drain, envelope_of, subscribe
from pml_common.bus.delivery import DeadLetter, Disposition, Done, Leave, Retry
from pml_common.bus.errors import BusError
from pml_common.bus.tasks import finish
from pml_common.contracts.base import Message
from pml_common.contracts.catalog import Consumer, DeadLetterConsumer

log = logging.getLogger(__name__)

_EXPIRES_S = 30.0
HEARTBEAT_S = 2.0
_RECOVERY_WAIT_S = 0.5

Process = Callable[[Envelope, int], Awaitable[Disposition]]
StoreDeadLetter = Callable[[Msg, Envelope, str], Awaitable[None]]
Recover = Callable[[], Awaitable[None]]


class PullLoop:
    """Pulls one replica's share of a durable consumer.

    `requested` is how many messages the server may still send; together with those in progress it
    never exceeds `max_in_flight`, except right after a lost connection, when the slots limit it.
    """

    def __init__(
        self,
        client: Client,
        stream: str,
        consumer: Consumer[Message] | DeadLetterConsumer,
        process: Process,
        store_dead_letter: StoreDeadLetter,
        recover: Recover,
    ) -> None:
        self._client = client
        self._consumer = consumer
        self._process = process
        self._store_dead_letter = store_dead_letter
        self._recover = recover
        self._reply_subject = client.new_inbox()
        self._subject = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer.durable}"
        self._slots = asyncio.Semaphore(consumer.max_in_flight)
        self._in_progress: dict[asyncio.Task[None], Msg] = {}
        self._requested = 0
        self._last_received = 0.0
        self._stopping = False
        self._subscription: Subscription | None = None
        self._heartbeat: asyncio.Task[None] | None = None
        self._recovery: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Subscribe and request the first messages."""
        self._subscription = await subscribe(self._client, self._reply_subject, self._receive)
        self._heartbeat = asyncio.create_task(self._keep_alive())
        await self._request_messages()

    async def restart(self) -> None:
        """Request again: the server has lost the pending request."""
        self._requested = 0
        await self._request_messages()

    async def stop(self, timeout: float) -> None:
        """Stop receiving; finish what is in progress, cancel it after `timeout`."""
        self._stopping = True
        end = asyncio.get_running_loop().time() + timeout
        if self._recovery is not None:
            self._recovery.cancel()
        if self._subscription is not None:
            await drain(self._subscription, timeout)
        await finish(set(self._in_progress), max(0.0, end - asyncio.get_running_loop().time()))
        if self._heartbeat is not None:
            self._heartbeat.cancel()

    async def _request_messages(self) -> None:
        """Request as many messages as there are free slots, in few requests."""
        most = self._consumer.max_in_flight
        free = most - len(self._in_progress) - self._requested
        if self._stopping or free <= 0 or (self._requested > 0 and free < most // 2):
            return
        if not self._client.is_connected:
            return
        self._requested += free
        self._last_received = asyncio.get_running_loop().time()
        request = {
            "batch": free,
            "expires": int(_EXPIRES_S * 1e9),
            "idle_heartbeat": int(HEARTBEAT_S * 1e9),
        }
        try:
            body = json.dumps(request).encode()
            await self._client.publish(self._subject, body, reply=self._reply_subject)
        except NatsError as error:
            self._requested -= free
            log.warning("%s: could not request messages: %r", self._consumer.durable, error)

    async def _receive(self, message: Msg) -> None:
        self._last_received = asyncio.get_running_loop().time()
        if not message.reply:
            await self._on_status(message.headers or {})
        elif self._stopping:
            await message.nak()
        else:
            self._requested = max(0, self._requested - 1)
            task = asyncio.create_task(self._handle(message))
            self._in_progress[task] = message
            task.add_done_callback(self._remove)

    async def _on_status(self, headers: dict[str, str]) -> None:
        status = headers.get("Status")
        if status == "100":  # a heartbeat
            return
        unsent = int(headers.get("Nats-Pending-Messages", str(self._requested)))
        self._requested = max(0, self._requested - unsent)
        if status == "408":  # the request has expired
            await self._request_messages()
        elif not self._stopping and (self._recovery is None or self._recovery.done()):
            log.warning("%s: server says %s", self._consumer.durable, headers)
            self._recovery = asyncio.create_task(self._recover_soon())

    async def _recover_soon(self) -> None:
        """Ensure that a deleted or moved consumer exists, then request again."""
        while True:
            await asyncio.sleep(_RECOVERY_WAIT_S)
            try:
                await self._recover()
            except BusError as error:
                log.warning("%s cannot be restored yet: %s", self._consumer.durable, error)
            else:
                await self.restart()
                return

    async def _handle(self, message: Msg) -> None:
        try:
            async with self._slots:
                await self._settle(message)
        except asyncio.CancelledError:
            await message.nak()
            raise
        except (BusError, NatsError) as error:
            log.warning("%s: left to redelivery: %s", self._consumer.durable, error)
        finally:
            if (task := asyncio.current_task()) is not None:
                self._remove(task)
            await self._request_messages()

    def _remove(self, task: asyncio.Task[None]) -> None:
        self._in_progress.pop(task, None)

    async def _settle(self, message: Msg) -> None:
        envelope = envelope_of(message)
        outcome = await self._process(envelope, message.metadata.num_delivered)
        match outcome:
            case Done():
                await message.ack()
            case Retry(delay_s):
                await message.nak(delay_s)
            case DeadLetter(reason):
                await self._store_dead_letter(message, envelope, reason)
                await message.term()
            case Leave():
                pass

    async def _keep_alive(self) -> None:
        """Extend the ack wait of messages in progress; request again if the server is silent."""
        loop = asyncio.get_running_loop()
        interval = min(self._consumer.ack_wait_s / 3, HEARTBEAT_S)
        while True:
            await asyncio.sleep(interval)
            if not self._client.is_connected:
                continue
            try:
                for message in list(self._in_progress.values()):
                    await message.in_progress()
                if (
                    self._requested
                    and loop.time() - self._last_received > 2 * HEARTBEAT_S + interval
                ):
                    log.warning("%s: no heartbeat; requesting again", self._consumer.durable)
                    await self.restart()
            except NatsError as error:
                log.warning("%s: ack wait not extended: %r", self._consumer.durable, error)
