"""Pulling from a durable consumer: requests, heartbeats, recovery, settling; common to the pull
loops."""

import asyncio
import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

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

StoreDeadLetter = Callable[[Msg, Envelope, str], Awaitable[None]]
Recover = Callable[[], Awaitable[None]]


@dataclass(frozen=True)
class Source:
    """A durable consumer on the server, where its dead letters go, and how to restore it."""

    client: Client
    stream: str
    consumer: Consumer[Message] | DeadLetterConsumer
    store_dead_letter: StoreDeadLetter
    recover: Recover


class Puller(ABC):
    """Pulls one replica's share of a durable consumer.

    `_requested` is how many messages the server may still send.
    """

    def __init__(self, source: Source) -> None:
        self._client = source.client
        self._consumer = source.consumer
        self._store_dead_letter = source.store_dead_letter
        self._recover = source.recover
        self._reply_subject = source.client.new_inbox()
        durable = source.consumer.durable
        self._subject = f"$JS.API.CONSUMER.MSG.NEXT.{source.stream}.{durable}"
        self._in_progress: dict[asyncio.Task[None], Sequence[Msg]] = {}
        self._requested = 0
        self._last_received = 0.0
        self._stopping = False
        self._subscription: Subscription | None = None
        self._heartbeat: asyncio.Task[None] | None = None
        self._recovery: asyncio.Task[None] | None = None

    @abstractmethod
    async def _request_messages(self) -> None:
        """Request as many messages as can be taken now."""

    @abstractmethod
    def _accept(self, message: Msg) -> None:
        """Take a message."""

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

    async def _request(self, count: int, *, waiting: bool = True) -> None:
        """Request `count` messages; without `waiting`, only what is stored by now."""
        if self._stopping or not self._client.is_connected:
            return
        self._requested += count
        self._last_received = asyncio.get_running_loop().time()
        request: dict[str, object] = {"batch": count}
        if waiting:
            request |= {
                "expires": int(_EXPIRES_S * 1e9),
                "idle_heartbeat": int(HEARTBEAT_S * 1e9),
            }
        else:
            request |= {"no_wait": True}
        try:
            body = json.dumps(request).encode()
            await self._client.publish(self._subject, body, reply=self._reply_subject)
        except NatsError as error:
            self._requested -= count
            log.warning("%s: could not request messages: %r", self._consumer.durable, error)

    async def _receive(self, message: Msg) -> None:
        self._last_received = asyncio.get_running_loop().time()
        if not message.reply:
            await self._on_status(message.headers or {})
        elif self._stopping:
            await message.nak()
        else:
            self._requested = max(0, self._requested - 1)
            self._accept(message)

    async def _on_status(self, headers: dict[str, str]) -> None:
        status = headers.get("Status")
        if status == "100":  # a heartbeat
            return
        unsent = int(headers.get("Nats-Pending-Messages", str(self._requested)))
        self._requested = max(0, self._requested - unsent)
        if status in ("404", "408"):  # nothing is stored; the request has expired
            await self._request_messages()
        elif not self._stopping and (self._recovery is None or self._recovery.done()):
            log.warning("%s: server says %s", self._consumer.durable, headers)
            self._recovery = asyncio.create_task(self._recover_soon())

    async def _recover_soon(self) -> None:
        """Wait until a deleted or moved consumer exists, then request again."""
        while True:
            await asyncio.sleep(_RECOVERY_WAIT_S)
            try:
                await self._recover()
            except BusError as error:
                log.warning("%s cannot be restored yet: %s", self._consumer.durable, error)
            else:
                await self.restart()
                return

    def _remove(self, task: asyncio.Task[None]) -> None:
        self._in_progress.pop(task, None)

    async def _settle(self, message: Msg, outcome: Disposition) -> None:
        match outcome:
            case Done():
                await message.ack()
            case Retry(delay_s):
                await message.nak(delay_s)
            case DeadLetter(reason):
                await self._store_dead_letter(message, envelope_of(message), reason)
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
                for messages in list(self._in_progress.values()):
                    for message in messages:
                        await message.in_progress()
                if (
                    self._requested
                    and loop.time() - self._last_received > 2 * HEARTBEAT_S + interval
                ):
                    log.warning("%s: no heartbeat; requesting again", self._consumer.durable)
                    await self.restart()
            except NatsError as error:
                log.warning("%s: ack wait not extended: %r", self._consumer.durable, error)
