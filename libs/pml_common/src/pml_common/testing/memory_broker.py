"""An in-memory message server: the rules of JetStream that the bus relies on."""

import asyncio
import json
import time
from collections import defaultdict, deque
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import cast

from typing_extensions import override

from pml_common.bus import codec, names
from pml_common.bus.clock import Cancellable, Clock, ScaledClock
from pml_common.bus.codec import Envelope, Payloads
from pml_common.bus.dead_letters import DeadLetterEntry, parse_dead_letter
from pml_common.bus.delivery import DeadLetter, Disposition, Done, Leave, Retry
from pml_common.bus.errors import BusUnavailable, Fenced, StaleServer
from pml_common.contracts.base import Message
from pml_common.contracts.catalog import (
    CONSUMERS,
    GATEWAY_ON_DEAD_LETTER,
    Consumer,
    DeadLetterConsumer,
)
from pml_common.outages import OutageLog


@dataclass(frozen=True)
class Stored:
    """A message in a stream."""

    sequence: int
    stored_at: datetime
    envelope: Envelope


@dataclass
class Stream:
    """The messages of a stream in order, and their ids."""

    messages: list[Stored] = field(default_factory=list[Stored])
    by_id: dict[str, int] = field(default_factory=dict[str, int])
    last: int = 0

    def store(self, envelope: Envelope, now: datetime) -> Stored | int:
        """Store a message and return it, or return the sequence of the one with the same id.
        Raises Fenced; StaleServer if the expected last message is not in the stream."""
        headers = envelope.headers
        if codec.EXPECTED_LAST in headers:
            expected = int(headers[codec.EXPECTED_LAST])
            last = self.last_on(headers[codec.EXPECTED_ON])
            if expected > last:
                raise StaleServer(f"publish {envelope.subject}: {expected} is not stored here yet")
            if expected != last:
                raise Fenced(envelope.subject, expected)
        message_id = envelope.headers[codec.MSG_ID]
        if message_id in self.by_id:
            if codec.EXPECTED_LAST in headers:
                raise Fenced(envelope.subject, int(headers[codec.EXPECTED_LAST]))
            return self.by_id[message_id]
        self.last += 1
        stored = Stored(self.last, now, envelope)
        self.messages.append(stored)
        self.by_id[message_id] = self.last
        return stored

    def on(self, subjects: str) -> list[Stored]:
        """Return the messages on these subjects; `*` stands for any one token."""
        wanted = subjects.split(".")
        return [each for each in self.messages if _matches(each, wanted)]

    def last_on(self, subjects: str) -> int:
        """Return the sequence of the last message on these subjects, or 0."""
        wanted = subjects.split(".")
        found = (each.sequence for each in reversed(self.messages) if _matches(each, wanted))
        return next(found, 0)


def _matches(stored: Stored, wanted: Sequence[str]) -> bool:
    tokens = stored.envelope.subject.split(".")
    return len(tokens) == len(wanted) and all(
        expected in ("*", token) for expected, token in zip(wanted, tokens, strict=True)
    )


@dataclass
class Replica:
    """One process's share of a durable consumer."""

    process: Callable[[Envelope, int], Coroutine[None, None, Disposition]]
    free: int
    build_dead_letter: Callable[[Envelope, str, int], Envelope] | None = None
    alive: bool = True
    tasks: set[asyncio.Task[Disposition]] = field(default_factory=set[asyncio.Task[Disposition]])


class Durable:
    """A durable consumer: messages in progress by replica, and pending redeliveries."""

    def __init__(
        self, broker: "MemoryBroker", consumer: Consumer[Message] | DeadLetterConsumer
    ) -> None:
        self._broker = broker
        self.consumer = consumer
        self.ready: deque[tuple[Stored, int]] = deque()
        self.unsettled = 0
        self._timers: dict[int, Cancellable] = {}
        self._current: dict[int, int] = {}
        self._replicas: deque[Replica] = deque()

    @property
    def has_replicas(self) -> bool:
        """Whether any replica consumes from it."""
        return bool(self._replicas)

    def offer(self, stored: Stored) -> None:
        """Queue a new message for delivery."""
        self.unsettled += 1
        self._queue(stored, 1)

    def join(self, replica: Replica) -> None:
        """Add a replica."""
        self._replicas.append(replica)
        self.dispatch()

    def leave(self, replica: Replica) -> None:
        """Remove a replica: it gets no more messages."""
        if replica in self._replicas:
            self._replicas.remove(replica)

    def dispatch(self) -> None:
        """Deliver ready messages to replicas with free capacity, in turn."""
        while self.ready and (replica := self._next_free()) is not None:
            stored, deliveries = self.ready.popleft()
            replica.free -= 1
            self._current[stored.sequence] = deliveries
            self._wait_for_ack(replica, stored, deliveries)
            task = asyncio.create_task(replica.process(stored.envelope, deliveries))
            replica.tasks.add(task)
            task.add_done_callback(partial(self._finished, replica, stored, deliveries))

    def _next_free(self) -> Replica | None:
        for _ in range(len(self._replicas)):
            self._replicas.rotate(-1)
            if self._replicas[-1].free > 0:
                return self._replicas[-1]
        return None

    def _queue(self, stored: Stored, deliveries: int) -> None:
        if deliveries > self.consumer.max_deliver:
            self._dead_letter(self._advisory(stored, deliveries - 1), None)
            return
        self.ready.append((stored, deliveries))
        self.dispatch()

    def _wait_for_ack(self, replica: Replica, stored: Stored, deliveries: int) -> None:
        def expire() -> None:
            if replica.alive and self._current.get(stored.sequence) == deliveries:
                self._wait_for_ack(replica, stored, deliveries)  # a living replica keeps it
            else:
                self._queue(stored, deliveries + 1)

        self._timers[stored.sequence] = self._broker.clock.call_later(
            self.consumer.ack_wait_s, expire
        )

    def _finished(
        self, replica: Replica, stored: Stored, deliveries: int, task: asyncio.Task[Disposition]
    ) -> None:
        replica.tasks.discard(task)
        replica.free += 1
        if replica.alive and self._current.get(stored.sequence) == deliveries:
            del self._current[stored.sequence]
            outcome = Retry(0) if task.cancelled() else task.result()
            self._conclude(outcome, replica, stored, deliveries)
        self.dispatch()

    def _conclude(
        self, outcome: Disposition, replica: Replica, stored: Stored, deliveries: int
    ) -> None:
        if isinstance(outcome, Leave):
            return
        self._timers.pop(stored.sequence).cancel()
        match outcome:
            case Done():
                self._settled(stored)
            case Retry(0):
                self._queue(stored, deliveries + 1)
            case Retry(delay_s):
                again = partial(self._queue, stored, deliveries + 1)
                self._timers[stored.sequence] = self._broker.clock.call_later(delay_s, again)
            case DeadLetter(reason):
                write = replica.build_dead_letter
                letter = write(stored.envelope, reason, deliveries) if write else None
                self._dead_letter(letter, stored)

    def _advisory(self, stored: Stored, deliveries: int) -> Envelope | None:
        """Build the server's advisory; there is none for the dead-letter consumer."""
        if isinstance(self.consumer, DeadLetterConsumer):
            return None
        stream = names.stream_of(self.consumer.message.kind, self.consumer.message.owner)
        durable = self.consumer.durable
        told = {
            "stream": stream,
            "consumer": durable,
            "stream_seq": stored.sequence,
            "deliveries": deliveries,
        }
        subject = f"{names.MAX_DELIVERIES_ADVISORIES}.{stream}.{durable}"
        return Envelope(subject, json.dumps(told).encode(), {})

    def _dead_letter(self, letter: Envelope | None, handled: Stored | None) -> None:
        if letter is not None:
            self._broker.add_dead_letter(letter)
        self._settled(handled)

    def _settled(self, handled: Stored | None) -> None:
        self.unsettled -= 1
        if handled is not None:
            self._broker.handled(self.consumer, handled)
        self._broker.changed.set()


QueryHandler = Callable[[Envelope, asyncio.Future[Envelope]], None]
"""Starts serving a request; the reply resolves the future."""


class MemoryBroker:
    """State shared by replicas: streams, consumers, subscriptions, queries, dead letters."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock: Clock = clock or ScaledClock()
        self.outages = OutageLog()
        self._available = True
        self.refusal: str | None = None
        self.dead: list[DeadLetterEntry] = []
        self.payloads: dict[str, bytes] = {}
        self.cache: dict[str, bytes] = {}
        self._cache_timers: dict[str, Cancellable] = {}
        self.streams: defaultdict[str, Stream] = defaultdict(Stream)
        self.subscriptions: list[Callable[[Envelope], None]] = []
        self.servers: deque[tuple[frozenset[str], QueryHandler]] = deque()
        self._handled_by: defaultdict[str, set[str]] = defaultdict(set)
        self.changed = asyncio.Event()
        self._durables = {c.durable: Durable(self, c) for c in CONSUMERS}
        self._letters = Durable(self, GATEWAY_ON_DEAD_LETTER)

    def server_of(self, subject: str) -> QueryHandler | None:
        """Return a replica that serves a subject, each in turn; None where none does."""
        wanted = {subject, names.of_any_scope(subject)}
        for _ in range(len(self.servers)):
            self.servers.rotate(-1)
            subjects, handler = self.servers[-1]
            if not wanted.isdisjoint(subjects):
                return handler
        return None

    @property
    def available(self) -> bool:
        """Whether the simulated server is reachable."""
        return self._available

    @available.setter
    def available(self, is_there: bool) -> None:
        self._available = is_there
        (self.outages.end if is_there else self.outages.begin)(time.monotonic())

    def require(self, what: str) -> None:
        """Raise BusUnavailable while the simulated server is unreachable."""
        if not self.available:
            raise BusUnavailable(f"{what}: not connected to NATS")

    def put(self, key: str, value: bytes, ttl_s: float) -> None:
        """Store a value for `ttl_s` seconds, replacing the key's value."""
        if key in self._cache_timers:
            self._cache_timers[key].cancel()
        self.cache[key] = value
        self._cache_timers[key] = self.clock.call_later(ttl_s, partial(self.cache.__delitem__, key))

    def durable(self, consumer: Consumer[Message] | DeadLetterConsumer) -> Durable:
        """Return the durable consumer of that name, updated to the given options."""
        if isinstance(consumer, DeadLetterConsumer):
            self._letters.consumer = consumer
            return self._letters
        known = self._durables.get(consumer.durable)
        if known is None:
            known = self._durables[consumer.durable] = Durable(self, consumer)
            for stored in self.stream(consumer.message.kind, consumer.message.owner).messages:
                if stored.envelope.subject.startswith(names.prefix_of(consumer.message) + "."):
                    known.offer(stored)
        known.consumer = consumer
        return known

    def delete(self, key: str) -> None:
        """Delete a cached value, if there is one."""
        if self.cache.pop(key, None) is not None:
            self._cache_timers.pop(key).cancel()

    def add_dead_letter(self, letter: Envelope) -> None:
        """Store a dead letter and deliver it to the dead-letter consumer."""
        self.dead.append(parse_dead_letter(letter))
        self._letters.offer(Stored(len(self.dead), self.clock.now(), letter))

    async def fetch(self, stream: str, sequence: int) -> Envelope | None:
        """Return one stored message, or None."""
        stored = self.streams[stream].messages
        return next((each.envelope for each in stored if each.sequence == sequence), None)

    def stream(self, kind: names.Kind, owner: str) -> Stream:
        """Return an owner's stream."""
        return self.streams[names.stream_of(kind, owner)]

    def store(self, envelope: Envelope) -> int:
        """Store, deliver, and return the sequence. Raises Fenced, BusUnavailable."""
        self.require(f"publish {envelope.subject}")
        address = names.parse_subject(envelope.subject)
        if address.kind == "sig":
            self._hear(envelope)
            return 0
        if self.refusal is not None:
            raise BusUnavailable(f"publish {envelope.subject}: {self.refusal}")
        stored = self.stream(address.kind, address.owner).store(envelope, self.clock.now())
        if isinstance(stored, int):
            return stored
        for durable in self._durables.values():
            prefix = names.prefix_of(cast(Consumer[Message], durable.consumer).message)
            if envelope.subject.startswith(prefix + "."):
                durable.offer(stored)
        self._hear(envelope)
        return stored.sequence

    def _hear(self, envelope: Envelope) -> None:
        for receive in list(self.subscriptions):
            receive(envelope)

    def handled(self, consumer: Consumer[Message] | DeadLetterConsumer, stored: Stored) -> None:
        """Remove a message that is kept until it is handled once its last consumer has."""
        if isinstance(consumer, DeadLetterConsumer) or not consumer.message.until_handled:
            return
        of = {each.durable for each in CONSUMERS if each.message is consumer.message}
        handled_by = self._handled_by[stored.envelope.headers[codec.MSG_ID]]
        handled_by.add(consumer.durable)
        if handled_by >= of:
            stream = self.stream(consumer.message.kind, consumer.message.owner)
            stream.messages = [each for each in stream.messages if each is not stored]

    async def settled(self, timeout: float = 5.0) -> None:
        """Wait until every message with a consuming replica was handled or dead-lettered."""
        async with asyncio.timeout(timeout):
            durables = (*self._durables.values(), self._letters)
            while any(d.has_replicas and d.unsettled for d in durables):
                self.changed.clear()
                await self.changed.wait()


class MemoryPayloads(Payloads):
    """The broker's store of large bodies."""

    def __init__(self, broker: MemoryBroker) -> None:
        self._broker = broker

    @override
    async def put(self, key: str, data: bytes) -> None:
        self._broker.require(f"store payload {key}")
        self._broker.payloads[key] = data

    @override
    async def get(self, key: str) -> bytes | None:
        self._broker.require(f"read payload {key}")
        return self._broker.payloads.get(key)
