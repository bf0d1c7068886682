"""The bus under test, in memory or on a real server, for its contract suite."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol, TypeVar
from uuid import uuid4

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from typing_extensions import override

from libs.pml_common.tests.support.sockets import proven_client, raw_registry
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus import codec, names, streams
from pml_common.bus.clock import ScaledClock
from pml_common.bus.codec import Envelope
from pml_common.bus.connection import envelope_of, flush, subscribe
from pml_common.bus.dead_letters import DeadLetterEntry, read_dead_letters
from pml_common.bus.identity import (
    SIGNATURE,
    all_services_identity,
    all_services_keys,
    signed_content,
)
from pml_common.bus.nats_bus import NatsBus
from pml_common.bus.port import BatchHandler, Bus, DeadLetterHandler, Handler
from pml_common.bus.server_api import ask
from pml_common.bus.sockets.folder import SocketFolder
from pml_common.bus.sockets.frames import Kind, decode_envelope, encode_envelope
from pml_common.bus.streams import AnyConsumer
from pml_common.contracts.base import Contract, Message, Query
from pml_common.contracts.catalog import Consumer, DeadLetterConsumer, QueryType
from pml_common.contracts.scope import Scope
from pml_common.signing import TrustedKeys
from pml_common.testing.memory_broker import MemoryBroker
from pml_common.testing.memory_bus import MemoryBus

M = TypeVar("M", bound=Message)
Q = TypeVar("Q", bound=Query)
R = TypeVar("R", bound=Contract)


class BusHarness(Protocol):
    """A server and the replicas connected to it."""

    scale: float
    """The real seconds that a second of the server takes."""

    async def connect(self, service: str) -> Bus:
        """Connect another replica of a service."""
        ...

    async def kill(self, bus: Bus) -> None:
        """Make a replica disappear as a killed process does, without notice to the server."""
        ...

    async def inject(self, envelope: Envelope) -> None:
        """Store arbitrary bytes, signed unless the envelope has a signature."""
        ...

    def reply_subject(self) -> str:
        """Return a new subject that replies to a raw query come on; empty if there are none."""
        ...

    async def ask_raw(self, asked: Envelope) -> Envelope:
        """Send a query's bytes to its owner and return the first reply."""
        ...

    async def answer_raw(
        self, query_type: QueryType[Q, R], reply: Callable[[Envelope], Envelope]
    ) -> None:
        """Answer a query by any bytes, in place of its owner."""
        ...

    async def forget_payloads(self) -> None:
        """Delete every stored payload."""
        ...

    async def dead_letters(self) -> Sequence[DeadLetterEntry]:
        """Return all dead letters."""
        ...

    async def close(self) -> None:
        """Drain all replicas."""
        ...


class MemoryBusHarness(BusHarness):
    """Memory buses on one broker, whose seconds are twenty times shorter."""

    def __init__(self) -> None:
        self.scale = 0.05
        self.broker = MemoryBroker(ScaledClock(self.scale))
        self._buses: list[MemoryBus] = []

    @override
    async def connect(self, service: str) -> Bus:
        self._buses.append(MemoryBus(self.broker))
        return self._buses[-1]

    @override
    async def kill(self, bus: Bus) -> None:
        for known in self._buses:
            if known is bus:
                known.kill()

    @override
    async def inject(self, envelope: Envelope) -> None:
        self.broker.store(_signed(envelope))

    @override
    def reply_subject(self) -> str:
        return ""

    @override
    async def ask_raw(self, asked: Envelope) -> Envelope:
        reply: asyncio.Future[Envelope] = asyncio.get_running_loop().create_future()
        serve = self.broker.server_of(asked.subject)
        assert serve is not None, f"nobody serves {asked.subject}"
        serve(asked, reply)
        return await asyncio.wait_for(reply, PATIENCE_S)

    @override
    async def answer_raw(
        self, query_type: QueryType[Q, R], reply: Callable[[Envelope], Envelope]
    ) -> None:
        subjects = frozenset({names.query_subject(query_type)})
        self.broker.servers.append((subjects, lambda asked, got: got.set_result(reply(asked))))

    @override
    async def forget_payloads(self) -> None:
        self.broker.payloads.clear()

    @override
    async def dead_letters(self) -> Sequence[DeadLetterEntry]:
        return list(self.broker.dead)

    @override
    async def close(self) -> None:
        for bus in self._buses:
            await bus.drain(0.1)


class UncheckedBus(NatsBus):
    """Accepts streams and consumers as they are: tests give consumers other options."""

    @override
    async def check_until(self, give_up: float) -> None:
        pass


class SelfProvisioningBus(UncheckedBus):
    """Sets up a consumer before it reads from it; its user is the operator."""

    @override
    async def consume(self, consumer: Consumer[M], handler: Handler[M]) -> None:
        await set_up(self._client, consumer)
        await super().consume(consumer, handler)

    @override
    async def consume_batches(self, consumer: Consumer[M], handler: BatchHandler[M]) -> None:
        await set_up(self._client, consumer)
        await super().consume_batches(consumer, handler)

    @override
    async def consume_dead_letters(
        self, consumer: DeadLetterConsumer, handler: DeadLetterHandler
    ) -> None:
        await set_up(self._client, consumer)
        await super().consume_dead_letters(consumer, handler)


async def set_up(client: Client, consumer: AnyConsumer) -> None:
    """Create or update a consumer, as the operator."""
    verb, body = streams.creation_of(consumer, streams.consumer_config(consumer))
    await ask(client, verb, body)


class _KillableBus(SelfProvisioningBus):
    async def close_socket(self) -> None:
        """Close the socket; handlers go on, like those of a disconnected process."""
        await self._client.close()


class NatsBusHarness(BusHarness):
    """A real server at `url`."""

    def __init__(self, url: str) -> None:
        self.scale = 1.0
        self._url = url
        self._buses: list[_KillableBus] = []
        self._raw: list[Client] = []

    @override
    async def connect(self, service: str) -> Bus:
        self._buses.append(
            await _KillableBus.connect(self._url, service=service, identity=all_services_identity())
        )
        return self._buses[-1]

    @override
    async def kill(self, bus: Bus) -> None:
        for known in self._buses:
            if known is bus:
                await known.close_socket()

    @override
    async def inject(self, envelope: Envelope) -> None:
        client = await self._client()
        await JetStreamContext(client).publish(
            envelope.subject, envelope.data, headers=dict(_signed(envelope).headers)
        )
        await client.close()

    @override
    def reply_subject(self) -> str:
        return f"_INBOX.raw.{uuid4().hex}"

    @override
    async def ask_raw(self, asked: Envelope) -> Envelope:
        client, replies = await self._raw_client(), asyncio.Queue[Envelope]()

        async def receive(reply: Msg) -> None:
            replies.put_nowait(envelope_of(reply))

        subscription = await subscribe(client, asked.reply, receive)
        await client.publish(asked.subject, asked.data, asked.reply, headers=dict(asked.headers))
        try:
            return await asyncio.wait_for(replies.get(), PATIENCE_S)
        finally:
            await subscription.unsubscribe()

    @override
    async def answer_raw(
        self, query_type: QueryType[Q, R], reply: Callable[[Envelope], Envelope]
    ) -> None:
        client = await self._raw_client()

        async def answer(asked: Msg) -> None:
            answered = reply(replace(envelope_of(asked), reply=asked.reply))
            await client.publish(asked.reply, answered.data, headers=dict(answered.headers))

        await subscribe(client, names.query_subject(query_type), answer)
        await flush(client)

    async def _raw_client(self) -> Client:
        self._raw.append(await self._client())
        return self._raw[-1]

    @override
    async def forget_payloads(self) -> None:
        client = await self._client()
        await JetStreamContext(client).purge_stream(names.PAYLOAD_STREAM)
        await client.close()

    @override
    async def dead_letters(self) -> Sequence[DeadLetterEntry]:
        client = await self._client()
        try:
            return await read_dead_letters(client)
        finally:
            await client.close()

    @override
    async def close(self) -> None:
        await asyncio.gather(*(bus.drain(0.1) for bus in self._buses))
        for client in self._raw:
            await client.close()

    async def _client(self) -> Client:
        client = Client()
        await client.connect(self._url)
        return client


class _SocketBus(_KillableBus):
    """Serves queries on its socket alone, so that each goes over the socket or fails."""

    @override
    async def serve(
        self,
        query_type: QueryType[Q, R],
        handler: Callable[[Q], Awaitable[R]],
        *,
        scopes: Collection[Scope] | None = None,
    ) -> None:
        await self._sockets.serve(query_type, handler, scopes=scopes)

    @override
    async def request(self, query_type: QueryType[Q, R], query: Q, *, timeout: float = 5.0) -> R:
        await self._sockets.look(query_type.owner)
        return await super().request(query_type, query, timeout=timeout)


class SocketBusHarness(NatsBusHarness):
    """A real server, and sockets for the registry's queries."""

    def __init__(self, url: str, folder: Path) -> None:
        super().__init__(url)
        self._folder = folder
        self._sockets = {"registry": folder}
        self._answering: asyncio.Task[None] | None = None

    @override
    async def connect(self, service: str) -> Bus:
        bus = await _SocketBus.connect(
            self._url, service=service, identity=all_services_identity(), sockets=self._sockets
        )
        self._buses.append(bus)
        return bus

    @override
    def reply_subject(self) -> str:
        return ""

    @override
    async def ask_raw(self, asked: Envelope) -> Envelope:
        (name,) = SocketFolder(self._folder).names()
        end = await proven_client(SocketFolder(self._folder), "gateway", name)
        end.send_frame(Kind.REQUEST, 1, encode_envelope(asked))
        reply = await end.receive(Kind.REPLY)
        end.close()
        return decode_envelope(reply.payload)

    @override
    async def answer_raw(
        self, query_type: QueryType[Q, R], reply: Callable[[Envelope], Envelope]
    ) -> None:
        async def answer() -> None:
            async with raw_registry(SocketFolder(self._folder)) as ends:
                listening.set()
                end = await ends.get()
                while True:
                    asked = await end.receive(Kind.REQUEST)
                    answered = reply(decode_envelope(asked.payload))
                    end.send_frame(Kind.REPLY, asked.number, encode_envelope(answered))

        listening = asyncio.Event()
        self._answering = asyncio.create_task(answer())
        await listening.wait()

    @override
    async def close(self) -> None:
        await super().close()
        if self._answering is not None:
            self._answering.cancel()
            await asyncio.wait({self._answering})


def _signed(envelope: Envelope) -> Envelope:
    entry = codec.type_of_subject(envelope.subject)
    if entry is None or SIGNATURE in envelope.headers:
        return envelope
    digest = hashlib.sha256(envelope.data).hexdigest()
    content = signed_content(envelope.subject, envelope.headers[codec.MSG_ID], digest)
    signature = all_services_identity().sign(entry.sender, content)
    return replace(envelope, headers={**envelope.headers, SIGNATURE: signature})


def write_key_files(folder: Path, service: str) -> dict[str, str]:
    """Write keys to `folder` and return the environment of a service's own process, so that it and
    this process accept each other's messages."""
    private, trusted = folder / f"{service}.pem", folder / "trusted.json"
    next(key for key in all_services_keys() if key.service == service).save(private)
    trusted.write_text(TrustedKeys(key.public for key in all_services_keys()).to_json())
    return {"PML_SIGNING_KEY": str(private), "PML_TRUSTED_KEYS": str(trusted)}


@contextmanager
def key_files(service: str) -> Generator[dict[str, Path]]:
    """Write keys as `write_key_files` does, and yield the service's settings of them."""
    with TemporaryDirectory() as folder:
        written = write_key_files(Path(folder), service)
        yield {
            "signing_key": Path(written["PML_SIGNING_KEY"]),
            "trusted_keys": Path(written["PML_TRUSTED_KEYS"]),
        }
