"""Ends of sockets: real ones without a server behind them, and raw ones that break the rules."""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from libs.pml_common.tests.support.proofs import query_of
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus.identity import Identity, all_services_identity
from pml_common.bus.query_exchange import QueryExchange
from pml_common.bus.sockets import handshake
from pml_common.bus.sockets.folder import SocketFolder
from pml_common.bus.sockets.frames import (
    MOST_PAYLOAD,
    Frame,
    FrameReader,
    Kind,
    encode_envelope,
    encode_frame,
)
from pml_common.bus.sockets.handshake import Challenge, Hello, Meeting
from pml_common.bus.sockets.queries import SocketQueries
from pml_common.contracts import catalog
from pml_common.contracts.registry import ListTools, ToolCatalog
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import ToolDefinition
from pml_common.testing.memory_broker import MemoryBroker, MemoryPayloads
from pml_common.testing.memory_bus import MemoryBus

M = TypeVar("M", bound=BaseModel)


QUESTION = ListTools(scope=Scope(org="acme", project="webapp"))


def request() -> bytes:
    """Return the payload of a request that a client sends now."""
    return encode_envelope(query_of(catalog.LIST_TOOLS, QUESTION))


def _catalog_of(name: str) -> ToolCatalog:
    return ToolCatalog(tools=(ToolDefinition(server="fs", name=name, description=""),))


FAR, NEAR = _catalog_of("far"), _catalog_of("near")


class Registry:
    """A handler that counts requests and can be held."""

    def __init__(self, answer: ToolCatalog) -> None:
        self.begun = 0
        self.ended = 0
        self._more = asyncio.Condition()
        self.go_on = asyncio.Event()
        self.go_on.set()
        self._answer = answer

    async def __call__(self, question: ListTools) -> ToolCatalog:
        """Answer a query."""
        async with self._more:
            self.begun += 1
            self._more.notify_all()
        await self.go_on.wait()
        self.ended += 1
        return self._answer

    async def has_begun(self, count: int = 1) -> None:
        """Wait until so many requests are being handled."""
        async with asyncio.timeout(PATIENCE_S), self._more:
            await self._more.wait_for(lambda: self.begun >= count)


class Machine:
    """Services of one machine: queries go over the registry's sockets, else over a memory bus."""

    def __init__(self, folder: Path) -> None:
        self.folder = SocketFolder(folder)
        self.broker = MemoryBroker()
        self.far = MemoryBus(self.broker)
        self.made: list[SocketQueries] = []

    def queries(
        self,
        service: str,
        instance: str = "one",
        identity: Identity | None = None,
        folder: SocketFolder | None = None,
    ) -> SocketQueries:
        """Build one end, in the machine's folder or another."""
        identity = identity or all_services_identity()
        exchange = QueryExchange(MemoryPayloads(self.broker), identity, self.far.now)
        folders = {"registry": (folder or self.folder).path}
        self.made.append(
            SocketQueries(
                folders,
                service=service,
                instance=instance,
                exchange=exchange,
                over_nats=self.far,
            )
        )
        return self.made[-1]

    async def close(self) -> None:
        """Close all ends."""
        for queries in self.made:
            await queries.stop(0.1)
            await queries.close()
        await self.far.drain(0.1)


class RawEnd:
    """One end of a socket that sends what a test wants."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._frames = FrameReader(MOST_PAYLOAD)
        self._read: list[Frame] = []

    def send(self, data: bytes) -> None:
        """Send bytes."""
        self._writer.write(data)

    def send_frame(self, kind: Kind, number: int = 0, said: BaseModel | bytes = b"") -> None:
        """Send a frame."""
        payload = said if isinstance(said, bytes) else said.model_dump_json().encode()
        self.send(encode_frame(kind, number, payload))

    async def receive(self, kind: Kind) -> Frame:
        """Return the next frame, which must be of this kind."""
        while not self._read:
            data = await asyncio.wait_for(self._reader.read(65536), PATIENCE_S)
            assert data, "the connection was closed"
            self._read += self._frames.feed(data)
        frame = self._read.pop(0)
        assert frame.kind is kind
        return frame

    async def receive_model(self, kind: Kind, model: type[M]) -> M:
        """Return the content of the next frame."""
        return handshake.parse(model, (await self.receive(kind)).payload)

    async def is_closed(self) -> bool:
        """Wait until the other end closes the connection; false if it sends anything before."""
        try:
            return await asyncio.wait_for(self._reader.read(65536), PATIENCE_S) == b""
        except ConnectionResetError:
            return True

    def close(self) -> None:
        """Close this end."""
        self._writer.close()


async def raw_client(folder: SocketFolder, name: str = "one") -> RawEnd:
    """Connect to a socket."""
    return RawEnd(*await asyncio.open_unix_connection(sock=folder.connect(name)))


async def proven_client(folder: SocketFolder, service: str, name: str = "one") -> RawEnd:
    """Connect to a socket of the registry's and prove to be this service."""
    end = await raw_client(folder, name)
    challenge = await end.receive_model(Kind.CHALLENGE, Challenge)
    pid = os.getpid()
    meeting = Meeting(service, "registry", pid, pid, handshake.new_nonce(), challenge.nonce)
    end.send_frame(Kind.HELLO, 0, handshake.hello(challenge, meeting, all_services_identity()))
    await end.receive(Kind.WELCOME)
    return end


@asynccontextmanager
async def raw_registry(folder: SocketFolder) -> AsyncGenerator["asyncio.Queue[RawEnd]"]:
    """Listen as the registry; each client that has connected and proved itself is queued."""
    ends: asyncio.Queue[RawEnd] = asyncio.Queue()
    met: list[RawEnd] = []

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        end, nonce, pid = RawEnd(reader, writer), handshake.new_nonce(), os.getpid()
        met.append(end)
        end.send_frame(Kind.CHALLENGE, 0, Challenge(service="registry", nonce=nonce))
        said = await end.receive_model(Kind.HELLO, Hello)
        meeting = Meeting(said.service, "registry", pid, pid, said.nonce, nonce)
        end.send_frame(
            Kind.WELCOME, 0, handshake.welcome(said, meeting, all_services_identity(), 2)
        )
        ends.put_nowait(end)

    server = await asyncio.start_unix_server(meet, sock=folder.listen("raw"))
    try:
        yield ends
    finally:
        server.close()
        for end in met:
            end.close()


@asynccontextmanager
async def unanswered(
    machine: Machine, timeout: float
) -> AsyncGenerator[tuple[SocketQueries, RawEnd, asyncio.Task[ToolCatalog]]]:
    """Send a request to a registry that reads it and does nothing. Yield the client, the registry's
    end and the request."""
    gateway = machine.queries("gateway")
    async with raw_registry(machine.folder) as clients:
        await gateway.look("registry")
        end = await clients.get()
        asking = asyncio.create_task(gateway.request(catalog.LIST_TOOLS, QUESTION, timeout=timeout))
        await end.receive(Kind.REQUEST)
        yield gateway, end, asking
