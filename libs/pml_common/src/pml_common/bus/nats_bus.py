"""The bus over a NATS server."""

import asyncio
import logging
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Self, TypeVar
from uuid import uuid4

from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError
from nats.js import JetStreamContext
from typing_extensions import override

from pml_common.bus import connection, names, streams, write_check
from pml_common.bus.bounded_queue import MOST_FOLLOWED, BoundedQueue, weight
from pml_common.bus.client import DirectClient
from pml_common.bus.connection import envelope_of, flush, server_errors, subscribe
from pml_common.bus.consumers import NatsConsumers
from pml_common.bus.dead_letters import DeadLetterEntry, read_dead_letters
from pml_common.bus.delivery import Receiver
from pml_common.bus.errors import BusUnavailable, NotProvisioned, Unreadable
from pml_common.bus.identity import Identity
from pml_common.bus.journal import NatsJournal
from pml_common.bus.key_value_cache import NatsKeyValueCache
from pml_common.bus.payloads import NatsPayloads
from pml_common.bus.port import (
    BatchHandler,
    Bus,
    DeadLetterHandler,
    EntityFilter,
    EventsOf,
    Handler,
    StoredMessage,
)
from pml_common.bus.publish import NatsPublisher
from pml_common.bus.query import NatsQueryClient, QueryServer
from pml_common.bus.query_exchange import QueryExchange
from pml_common.bus.server_clock import ServerClock, read_clock
from pml_common.bus.sockets.queries import SocketQueries
from pml_common.bus.stalls import StallWatch
from pml_common.bus.stream_check import StreamCheck
from pml_common.bus.streams import StreamSettings
from pml_common.contracts.base import Contract, Message, Query
from pml_common.contracts.catalog import Consumer, DeadLetterConsumer, MessageType, QueryType
from pml_common.contracts.scope import Scope
from pml_common.outages import Outage

log = logging.getLogger(__name__)

M = TypeVar("M", bound=Message)
Q = TypeVar("Q", bound=Query)
R = TypeVar("R", bound=Contract)

_CHECK_AGAIN_S = 0.3


class NatsBus(Bus):
    """One service replica's connection."""

    def __init__(
        self,
        client: DirectClient,
        *,
        service: str,
        instance: str,
        identity: Identity,
        stream_settings: StreamSettings = streams.DEFAULTS,
        sockets: Mapping[str, Path] | None = None,
    ) -> None:
        self._client = client
        self._service = service
        self._js = JetStreamContext(client, timeout=connection.REPLY_TIMEOUT_S)
        self._check = StreamCheck(client, service, stream_settings)
        self._payloads = NatsPayloads(client, self._js, service)
        self._cache = NatsKeyValueCache(client, self._js, identity)
        self._publisher = NatsPublisher(client, self._js, self._payloads, identity)
        self._receiver = Receiver(self._payloads, identity, self.publish)
        self._exchange = QueryExchange(self._payloads, identity, self.now)
        self._consumers = NatsConsumers(client, self._receiver, self._publisher)
        self._stalls = StallWatch(
            client, self._publisher, identity, self._receiver.unsettled, self.now
        )
        self._journal = NatsJournal(client, self._receiver)
        self._sockets = SocketQueries(
            sockets or {},
            service=service,
            instance=instance,
            exchange=self._exchange,
            over_nats=NatsQueryClient(client, self._exchange),
        )
        self._queries = QueryServer(client, self._exchange, service, instance)
        self._subscriptions: list[Subscription] = []
        self._followers: set[BoundedQueue[Message]] = set()
        self._drained = False
        self.clock = ServerClock(partial(read_clock, client, service))
        self._clock_task: asyncio.Task[None] | None = None

    @classmethod
    async def connect(
        cls,
        url: str,
        *,
        service: str,
        identity: Identity,
        instance: str | None = None,
        stream_settings: StreamSettings = streams.DEFAULTS,
        sockets: Mapping[str, Path] | None = None,
        patience_s: float = connection.PATIENCE_S,
    ) -> Self:
        """Connect and check that streams and consumers are as configured. `identity` signs what is
        published and verifies what is read; `stream_settings` are those that streams should have;
        `sockets` are the folders of services that queries reach over sockets (ADR 0009);
        `patience_s` bounds the wait for a server, for a cluster to elect its leader, and for
        provisioning. Raises BusUnavailable, NotProvisioned."""
        instance = instance or uuid4().hex[:8]
        give_up, buses = asyncio.get_running_loop().time() + patience_s, list[Self]()

        async def reconnected() -> None:
            for bus in buses:
                await bus.restart()

        name = f"pml-{service}-{instance}"
        client = await connection.connect(
            url, name, reconnected, patience_s, inbox=names.inbox_of(service)
        )
        bus = cls(
            client,
            service=service,
            instance=instance,
            identity=identity,
            stream_settings=stream_settings,
            sockets=sockets,
        )
        try:
            await bus.check_until(give_up)
            await bus.clock.synchronize()
        except BaseException:
            await client.close()
            raise
        bus._clock_task = asyncio.create_task(bus.clock.keep_synchronized(), name="server clock")
        buses.append(bus)
        return bus

    async def check_until(self, give_up: float) -> None:
        """Check what we depend on, retrying until the event loop's time `give_up`. Raises
        NotProvisioned, BusUnavailable."""
        said: str | None = None
        while True:
            try:
                with server_errors(self._client, "check the streams"):
                    return await self._check.require()
            except (BusUnavailable, NotProvisioned) as error:
                if asyncio.get_running_loop().time() >= give_up:
                    raise
                if str(error) != said:
                    said = str(error)
                    log.warning("NATS is not ready yet: %s", said)
            await asyncio.sleep(_CHECK_AGAIN_S)

    async def restart(self) -> None:
        """Request messages again after a lost connection."""
        await self._consumers.restart()

    @override
    async def publish(self, message: Message) -> int:
        return await self._publisher.publish(message)

    @override
    async def request(self, query_type: QueryType[Q, R], query: Q, *, timeout: float = 5.0) -> R:
        return await self._sockets.request(query_type, query, timeout=timeout)

    @override
    async def history(
        self, scope: Scope, entity: str, *, of: EventsOf | None = None
    ) -> Sequence[StoredMessage]:
        return await self._journal.history(scope, entity, of=of)

    @override
    async def salvage(
        self, of: EventsOf, scope: Scope, entity: str
    ) -> Sequence[StoredMessage | Unreadable]:
        return await self._journal.salvage(of, scope, entity)

    @override
    async def put(self, key: str, value: bytes, ttl_s: float) -> None:
        await self._cache.put(key, value, ttl_s)

    @override
    async def get(self, key: str) -> bytes | None:
        return await self._cache.get(key)

    @override
    async def delete(self, key: str) -> None:
        await self._cache.delete(key)

    @override
    async def count(self, prefix: str) -> int:
        return await self._cache.count(prefix)

    @override
    async def consume(self, consumer: Consumer[M], handler: Handler[M]) -> None:
        await self._consumers.consume(consumer, handler)
        self._stalls.add(consumer)

    @override
    async def consume_batches(self, consumer: Consumer[M], handler: BatchHandler[M]) -> None:
        await self._consumers.consume_batches(consumer, handler)
        self._stalls.add(consumer)

    @override
    async def consume_dead_letters(
        self, consumer: DeadLetterConsumer, handler: DeadLetterHandler
    ) -> None:
        await self._consumers.consume_dead_letters(consumer, handler, self._journal.fetch)

    @override
    async def serve(
        self,
        query_type: QueryType[Q, R],
        handler: Callable[[Q], Awaitable[R]],
        *,
        scopes: Collection[Scope] | None = None,
    ) -> None:
        with server_errors(self._client, f"serve {query_type.name}"):
            await self._queries.serve(query_type, handler, scopes=scopes)
        await self._sockets.serve(query_type, handler, scopes=scopes)

    @override
    async def listen(
        self,
        message_type: MessageType[M],
        handler: Callable[[M], Awaitable[None]],
        *,
        wants: EntityFilter | None = None,
    ) -> None:
        async def receive(message: Msg) -> None:
            if names.is_wanted(names.published_subject(message.subject), wants):
                await self._receiver.handle_broadcast(message_type, handler, envelope_of(message))

        with server_errors(self._client, f"listen to {message_type.name}"):
            subscription = await subscribe(self._client, names.heard_filter(message_type), receive)
            self._subscriptions.append(subscription)
            await flush(self._client)

    @override
    @asynccontextmanager
    async def follow(self, scope: Scope, entity: str) -> AsyncGenerator[AsyncIterator[Message]]:
        queue: BoundedQueue[Message] = BoundedQueue(MOST_FOLLOWED)

        async def receive(message: Msg) -> None:
            envelope = envelope_of(message)
            if (event := await self._receiver.receive_broadcast(envelope)) is not None:
                queue.put(event, weight(envelope))

        stored = names.stored_subject(names.entity_filter(scope, entity))
        with server_errors(self._client, f"follow {entity}"):
            subscription = await subscribe(self._client, stored, receive)
            await flush(self._client)
        self._followers.add(queue)
        try:
            yield queue
        finally:
            self._followers.discard(queue)
            if not self._client.is_closed:
                await subscription.unsubscribe()

    async def dead_letters(self) -> list[DeadLetterEntry]:
        """Return all dead letters, oldest first. Raises BusUnavailable."""
        return await read_dead_letters(self._client)

    @override
    async def drain(self, timeout: float = 10.0) -> None:
        if self._drained:
            return
        self._drained = True
        if self._clock_task is not None:
            self._clock_task.cancel()
        await asyncio.gather(
            self._queries.stop(timeout),
            self._sockets.stop(timeout),
            self._consumers.stop(timeout),
            *(connection.drain(subscription, timeout) for subscription in self._subscriptions),
        )
        await self._sockets.close()
        for queue in self._followers:
            queue.close()
        if self._client.is_connected:
            try:
                await flush(self._client)
            except NatsError as error:
                log.warning("closing without the server's confirmation: %s", error)
        await self._client.close()

    @override
    async def healthy(self) -> bool:
        with suppress(NatsError):
            query_client = JetStreamContext(self._client, timeout=1.0)
            return self._client.is_connected and bool(await query_client.account_info())
        return False

    @override
    def now(self) -> datetime:
        return self.clock.now()

    @override
    def outages(self) -> Sequence[Outage]:
        return self.clock.outages()

    @override
    async def refusal(self) -> str | None:
        every = write_check.subjects_of(self._service)
        found = await write_check.refusal(self._client, every, must_exist=True)
        return found if self._client.is_connected else None

    @override
    async def stalled(self) -> str | None:
        return await self._stalls.stalled()

    @override
    def unserved(self) -> str | None:
        return self._stalls.unserved()

    @override
    async def shortfall(self) -> str | None:
        return await self._check.shortfall()
