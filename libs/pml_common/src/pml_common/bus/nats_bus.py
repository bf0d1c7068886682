"""The bus over a NATS server."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Self, TypeVar
from uuid import uuid4

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError
from nats.js import JetStreamContext

from pml_common.bus import connection, names, streams
from pml_common.bus.codec import Envelope
from pml_common.bus.connection import flush, server_errors, subscribe
from pml_common.bus.consume import PullLoop
from pml_common.bus.dead_letters import DeadLetter, bury, read_dead
from pml_common.bus.delivery import Disposition, Receiver
from pml_common.bus.identity import Identity
from pml_common.bus.inbox import MOST_FOLLOWED, Inbox, weight
from pml_common.bus.journal import NatsJournal
from pml_common.bus.memos import NatsMemos
from pml_common.bus.payloads import NatsPayloads
from pml_common.bus.port import Bus, Handler, Recorded
from pml_common.bus.publish import NatsPublisher
from pml_common.bus.query import NatsAsker, QueryServer
from pml_common.contracts.base import Contract, Message, Query
from pml_common.contracts.catalog import Consumer, MessageType, QueryType
from pml_common.contracts.scope import Scope

log = logging.getLogger(__name__)

M = TypeVar("M", bound=Message)
Q = TypeVar("Q", bound=Query)
R = TypeVar("R", bound=Contract)


class NatsBus(Bus):
    """One service replica's connection; see `port.Bus` for what each method promises."""

    def __init__(
        self, client: Client, *, service: str, instance: str, replicas: int, identity: Identity
    ) -> None:
        self._client = client
        self._service = service
        self._js = JetStreamContext(client, timeout=connection.REPLY_TIMEOUT_S)
        self._replicas = replicas
        self._payloads = NatsPayloads(client, self._js)
        self._memos = NatsMemos(client, self._js)
        self._publisher = NatsPublisher(client, self._js, self._payloads, identity)
        self._receiver = Receiver(self._payloads, identity, self.publish)
        self._journal = NatsJournal(client, self._receiver)
        self._asker = NatsAsker(client, self._receiver)
        self._queries = QueryServer(client, self._receiver, service, instance)
        self._loops: list[PullLoop] = []
        self._heard: list[Subscription] = []
        self._inboxes: set[Inbox[Message]] = set()
        self._drained = False

    @classmethod
    async def connect(
        cls,
        url: str,
        *,
        service: str,
        identity: Identity,
        instance: str | None = None,
        replicas: int = 1,
        patience_s: float = connection.PATIENCE_S,
    ) -> Self:
        """Connect and see that streams and our consumers exist; `identity` signs what is published
        and verifies what is read, `replicas` is of each stream in a cluster, `patience_s` how long
        to wait for a server. Raises BusUnavailable."""
        instance = instance or uuid4().hex[:8]
        buses: list[Self] = []

        async def reconnected() -> None:
            for bus in buses:
                await bus.restart()

        name = f"pml-{service}-{instance}"
        client = await connection.connect(
            url, name, reconnected, patience_s, inbox=names.inbox_of(service)
        )
        bus = cls(client, service=service, instance=instance, replicas=replicas, identity=identity)
        try:
            await bus.ensure()
        except BaseException:
            await client.close()
            raise
        buses.append(bus)
        return bus

    async def ensure(self) -> None:
        """Create the catalogue's streams, change our own, create or change our consumers."""
        with server_errors(self._client, "create streams"):
            await streams.ensure_all(self._js, self._service, self._replicas)

    async def restart(self) -> None:
        """Ask for messages anew after a lost connection."""
        for loop in self._loops:
            await loop.restart()

    async def publish(self, message: Message, *, expected_last: int | None = None) -> int:
        return await self._publisher.publish(message, expected_last=expected_last)

    async def ask(self, query_type: QueryType[Q, R], query: Q, *, timeout: float = 5.0) -> R:
        return await self._asker.ask(query_type, query, timeout)

    async def history(
        self, scope: Scope, entity: str, *, of: MessageType[Message] | None = None
    ) -> Sequence[Recorded]:
        return await self._journal.history(scope, entity, of=of)

    async def last_of(
        self, message_type: MessageType[Message], scope: Scope, entity: str
    ) -> Recorded | None:
        return await self._journal.last_of(message_type, scope, entity)

    async def remember(self, key: str, value: bytes, ttl_s: float) -> None:
        await self._memos.remember(key, value, ttl_s)

    async def recall(self, key: str) -> bytes | None:
        return await self._memos.recall(key)

    async def consume(self, consumer: Consumer[M], handler: Handler[M]) -> None:
        async def process(envelope: Envelope, deliveries: int) -> Disposition:
            return await self._receiver.handle(consumer, handler, envelope, deliveries)

        async def bury_it(message: Msg, envelope: Envelope, reason: str) -> None:
            await bury(self._publisher, consumer.durable, message, envelope, reason)

        async def recover() -> None:
            await self.ensure()
            with server_errors(self._client, f"restore {consumer.durable}"):
                await streams.ensure_consumer(self._js, consumer)

        with server_errors(self._client, f"consume {consumer.durable}"):
            await streams.ensure_consumer(self._js, consumer)
            loop = PullLoop(self._client, consumer, process, bury_it, recover)
            await loop.start()
        self._loops.append(loop)

    async def serve(
        self, query_type: QueryType[Q, R], handler: Callable[[Q], Awaitable[R]]
    ) -> None:
        with server_errors(self._client, f"serve {query_type.name}"):
            await self._queries.serve(query_type, handler)

    async def listen(
        self, message_type: MessageType[M], handler: Callable[[M], Awaitable[None]]
    ) -> None:
        async def receive(message: Msg) -> None:
            await self._receiver.hear(message_type, handler, _envelope(message))

        with server_errors(self._client, f"listen to {message_type.name}"):
            subscription = await subscribe(self._client, names.filter_of(message_type), receive)
            self._heard.append(subscription)
            await flush(self._client)

    @asynccontextmanager
    async def follow(self, scope: Scope, entity: str) -> AsyncGenerator[AsyncIterator[Message]]:
        inbox: Inbox[Message] = Inbox(MOST_FOLLOWED)

        async def receive(message: Msg) -> None:
            envelope = _envelope(message)
            if (event := await self._receiver.overhear(envelope)) is not None:
                inbox.put(event, weight(envelope))

        with server_errors(self._client, f"follow {entity}"):
            subscription = await subscribe(
                self._client, names.entity_filter(scope, entity), receive
            )
            await flush(self._client)
        self._inboxes.add(inbox)
        try:
            yield inbox
        finally:
            self._inboxes.discard(inbox)
            if not self._client.is_closed:
                await subscription.unsubscribe()

    async def dead_letters(self) -> list[DeadLetter]:
        """All that was buried, oldest first. Raises BusUnavailable."""
        return await read_dead(self._client)

    async def drain(self, timeout: float = 10.0) -> None:
        if self._drained:
            return
        self._drained = True
        await asyncio.gather(
            self._queries.stop(timeout),
            *(loop.stop(timeout) for loop in self._loops),
            *(connection.drain(subscription, timeout) for subscription in self._heard),
        )
        for inbox in self._inboxes:
            inbox.close()
        if self._client.is_connected:
            try:
                await flush(self._client)
            except NatsError as error:
                log.warning("closing without the server's word: %s", error)
        await self._client.close()

    async def healthy(self) -> bool:
        if not self._client.is_connected:
            return False
        try:
            await JetStreamContext(self._client, timeout=1.0).account_info()
        except NatsError:
            return False
        return True


def _envelope(message: Msg) -> Envelope:
    return Envelope(message.subject, message.data, message.headers or {})
