"""The bus without a server, for tests: the same guarantees and bytes, no waiting."""

import asyncio
import heapq
import time
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Sequence,
)
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from typing import TypeVar

from typing_extensions import override

from pml_common.bus import codec, names, tracing
from pml_common.bus.batch_delivery import BatchReceiver, batch_of
from pml_common.bus.bounded_queue import MOST_FOLLOWED, BoundedQueue, weight
from pml_common.bus.codec import Envelope
from pml_common.bus.dead_letters import DeadLetterEntry, DeadLetterReader, build_dead_letter
from pml_common.bus.delivery import Disposition, Receiver
from pml_common.bus.errors import (
    BusUnavailable,
    NoResponder,
    Unreadable,
    of_unknown_type,
)
from pml_common.bus.identity import Identity, all_services_identity
from pml_common.bus.port import (
    BatchHandler,
    Bus,
    DeadLetterHandler,
    EntityFilter,
    EventsOf,
    Handler,
    StoredMessage,
    without_foreign,
)
from pml_common.bus.query_exchange import QueryExchange, no_reply
from pml_common.bus.tasks import finish
from pml_common.contracts.base import Contract, Message, Query
from pml_common.contracts.catalog import (
    SERVICES,
    Consumer,
    DeadLetterConsumer,
    MessageType,
    QueryType,
)
from pml_common.contracts.scope import Scope
from pml_common.outages import Outage
from pml_common.testing.memory_batches import MemoryBatches
from pml_common.testing.memory_broker import MemoryBroker, MemoryPayloads, Replica, Stored

M = TypeVar("M", bound=Message)
Q = TypeVar("Q", bound=Query)
R = TypeVar("R", bound=Contract)


class MemoryBus(Bus):
    """One replica's connection to a `MemoryBroker`, which replicas and services share. Without an
    `identity` it may publish the messages of every service."""

    def __init__(
        self, broker: MemoryBroker | None = None, identity: Identity | None = None
    ) -> None:
        self.broker = broker or MemoryBroker()
        self._identity = identity or all_services_identity()
        self._payloads = MemoryPayloads(self.broker)
        self._receiver = Receiver(self._payloads, self._identity, self.publish)
        self._exchange = QueryExchange(self._payloads, self._identity, self.now)
        self._replicas: list[tuple[Consumer[Message] | DeadLetterConsumer, Replica]] = []
        self._leave: list[Callable[[], None]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._followers: set[BoundedQueue[Message]] = set()
        self._closed = False

    @override
    async def publish(self, message: Message) -> int:
        self._require(f"publish {type(message).__name__}")
        with tracing.publishing(message) as headers:
            sealed = await codec.seal(message, headers, self._payloads, self._identity)
            return self.broker.store(sealed)

    @override
    async def request(self, query_type: QueryType[Q, R], query: Q, *, timeout: float = 5.0) -> R:
        with tracing.requesting(query_type) as headers:
            try:
                self._require(f"request {query_type.name}")
                asked = await self._exchange.seal(query_type, query, headers)
                reply = await self._reply(query_type, asked, timeout)
                doubt = self._exchange.doubt(query_type, asked, reply)
                if doubt is not None:
                    raise no_reply(query_type, doubt)
                return await self._exchange.open(query_type, reply)
            except BusUnavailable as error:
                raise no_reply(query_type, str(error)) from error

    async def _reply(
        self, query_type: QueryType[Query, Contract], request: Envelope, timeout: float
    ) -> Envelope:
        handler = self.broker.server_of(request.subject)
        if handler is None:
            raise NoResponder(f"{query_type.owner} {query_type.name}")
        reply: asyncio.Future[Envelope] = asyncio.get_running_loop().create_future()
        handler(request, reply)

        def expire() -> None:
            if not reply.done():
                reply.set_exception(no_reply(query_type, f"no answer within {timeout:g} s"))

        timer = self.broker.clock.call_later(timeout, expire)
        try:
            return await reply
        finally:
            timer.cancel()

    @override
    async def history(
        self, scope: Scope, entity: str, *, of: EventsOf | None = None
    ) -> Sequence[StoredMessage]:
        self._require(f"read {entity}")
        wanted: Sequence[EventsOf] = SERVICES if of is None else (of,)
        parts = [without_foreign(await self.salvage(each, scope, entity)) for each in wanted]
        return list(heapq.merge(*parts, key=lambda recorded: recorded.stored_at))

    @override
    async def salvage(
        self, of: EventsOf, scope: Scope, entity: str
    ) -> Sequence[StoredMessage | Unreadable]:
        self._require(f"read {entity}")
        found: list[StoredMessage | Unreadable] = []
        stream = self.broker.streams[names.events_stream(of)]
        for stored in stream.on(names.events_filter(of, scope, entity)):
            try:
                record = await self._record(stored)
            except Unreadable as error:
                found.append(error)
            else:
                found.append(record or of_unknown_type(stored.envelope.subject, stored.sequence))
        return found

    async def _record(self, stored: Stored) -> StoredMessage | None:
        return await self._receiver.record(stored.envelope, stored.sequence, stored.stored_at)

    @override
    async def put(self, key: str, value: bytes, ttl_s: float) -> None:
        self._require(f"put {key}")
        self.broker.put(key, value, ttl_s)

    @override
    async def get(self, key: str) -> bytes | None:
        self._require(f"get {key}")
        return self.broker.cache.get(key)

    @override
    async def delete(self, key: str) -> None:
        self._require(f"delete {key}")
        self.broker.delete(key)

    @override
    async def count(self, prefix: str) -> int:
        self._require(f"count {prefix}")
        return sum(key.rpartition(".")[0] == prefix for key in self.broker.cache)

    @override
    async def consume(self, consumer: Consumer[M], handler: Handler[M]) -> None:
        async def process(envelope: Envelope, deliveries: int) -> Disposition:
            return await self._receiver.handle(consumer, handler, envelope, deliveries)

        self._require(f"consume {consumer.durable}")
        write = partial(build_dead_letter, consumer, self._identity)
        self._join(consumer, Replica(process, consumer.max_in_flight, write))

    @override
    async def consume_batches(self, consumer: Consumer[M], handler: BatchHandler[M]) -> None:
        batch = batch_of(consumer)
        receiver = BatchReceiver(self._receiver, consumer, handler)
        batches = MemoryBatches(batch.most, receiver.handle)
        self._require(f"consume {consumer.durable}")
        write = partial(build_dead_letter, consumer, self._identity)
        self._join(consumer, Replica(batches.process, 2 * batch.most, write))

    @override
    async def consume_dead_letters(
        self, consumer: DeadLetterConsumer, handler: DeadLetterHandler
    ) -> None:
        reader = DeadLetterReader(self._receiver, self.broker.fetch)

        async def process(envelope: Envelope, deliveries: int) -> Disposition:
            return await reader.handle(consumer, handler, envelope, deliveries)

        self._require(f"consume {consumer.durable}")
        self._join(consumer, Replica(process, consumer.max_in_flight))

    def _join(self, consumer: Consumer[Message] | DeadLetterConsumer, replica: Replica) -> None:
        self._replicas.append((consumer, replica))
        self.broker.durable(consumer).join(replica)

    @override
    async def listen(
        self,
        message_type: MessageType[M],
        handler: Callable[[M], Awaitable[None]],
        *,
        wants: EntityFilter | None = None,
    ) -> None:
        self._require(f"listen to {message_type.name}")
        queue: BoundedQueue[Envelope] = BoundedQueue()

        async def handle_all() -> None:
            async for envelope in queue:
                if names.is_wanted(envelope.subject, wants):
                    await self._receiver.handle_broadcast(message_type, handler, envelope)

        self._subscribe(f"{names.prefix_of(message_type)}.", "", queue)
        self._spawn(handle_all())

    @override
    async def serve(
        self,
        query_type: QueryType[Q, R],
        handler: Callable[[Q], Awaitable[R]],
        *,
        scopes: Collection[Scope] | None = None,
    ) -> None:
        self._require(f"serve {query_type.name}")
        self._exchange.begin()

        async def answer(request: Envelope, reply: asyncio.Future[Envelope]) -> None:
            answered = await self._exchange.answer(query_type, handler, request)
            if not reply.done():
                reply.set_result(answered)

        def receive(request: Envelope, reply: asyncio.Future[Envelope]) -> None:
            self._spawn(answer(request, reply))

        serving = frozenset(names.served_subjects(query_type, scopes)), receive
        self.broker.servers.append(serving)
        self._leave.append(lambda: self.broker.servers.remove(serving))

    @override
    @asynccontextmanager
    async def follow(self, scope: Scope, entity: str) -> AsyncGenerator[AsyncIterator[Message]]:
        self._require(f"follow {entity}")
        envelopes: BoundedQueue[Envelope] = BoundedQueue()
        messages: BoundedQueue[Message] = BoundedQueue(MOST_FOLLOWED)

        async def receive() -> None:
            async for envelope in envelopes:
                if (event := await self._receiver.receive_broadcast(envelope)) is not None:
                    messages.put(event, weight(envelope))

        leave = self._subscribe("pml.evt.", f".{scope}.{names.entity_token(entity)}", envelopes)
        task = self._spawn(receive())
        self._followers.add(messages)
        try:
            yield messages
        finally:
            self._followers.discard(messages)
            leave()
            task.cancel()

    async def dead_letters(self) -> list[DeadLetterEntry]:
        """Return all dead letters, oldest first."""
        return list(self.broker.dead)

    @override
    async def drain(self, timeout: float = 10.0) -> None:
        for leave in self._leave:
            leave()
        self._leave.clear()
        handling: set[asyncio.Task[object]] = {*self._tasks}
        for consumer, replica in self._replicas:
            self.broker.durable(consumer).leave(replica)
            handling |= replica.tasks
        await finish(handling, timeout)
        self._closed = True
        for queue in self._followers:
            queue.close()

    @override
    async def healthy(self) -> bool:
        return self.broker.available and not self._closed

    @override
    def now(self) -> datetime:
        return self.broker.clock.now()

    @override
    def outages(self) -> Sequence[Outage]:
        return self.broker.outages.as_of(time.monotonic())

    @override
    async def refusal(self) -> str | None:
        return self.broker.refusal if await self.healthy() else None

    @override
    async def stalled(self) -> str | None:
        return None

    @override
    def unserved(self) -> str | None:
        return None

    @override
    async def shortfall(self) -> str | None:
        return None

    def kill(self) -> None:
        """Disappear as a killed process does: what it was handling is never acknowledged."""
        self._closed = True
        for leave in self._leave:
            leave()
        for consumer, replica in self._replicas:
            replica.alive = False
            self.broker.durable(consumer).leave(replica)
            for task in replica.tasks:
                task.cancel()

    def _require(self, what: str) -> None:
        if self._closed:
            raise BusUnavailable(f"{what}: the bus is closed")
        self.broker.require(what)

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _subscribe(self, head: str, tail: str, queue: BoundedQueue[Envelope]) -> Callable[[], None]:
        def receive(envelope: Envelope) -> None:
            if envelope.subject.startswith(head) and envelope.subject.endswith(tail):
                queue.put(envelope)

        self.broker.subscriptions.append(receive)

        def leave() -> None:
            if receive in self.broker.subscriptions:
                self.broker.subscriptions.remove(receive)
            queue.close()

        self._leave.append(leave)
        return leave
