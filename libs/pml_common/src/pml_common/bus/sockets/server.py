"""The server's end: queries served on a socket of this replica's own."""

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import TypeVar, cast

from opentelemetry import trace
from typing_extensions import override

from pml_common.bus import names
from pml_common.bus.codec import Envelope
from pml_common.bus.query_exchange import QueryExchange
from pml_common.bus.sockets import handshake
from pml_common.bus.sockets.folder import SocketFolder, SocketUnusable, require_own
from pml_common.bus.sockets.frames import (
    INLINE_LIMIT,
    MOST_PAYLOAD,
    MOST_UNPROVEN,
    Frame,
    FrameError,
    FrameReader,
    Kind,
    decode_envelope,
    encode_envelope,
    encode_frame,
)
from pml_common.bus.sockets.handshake import Challenge, HandshakeFailed, Hello, Meeting
from pml_common.bus.tasks import finish
from pml_common.contracts.base import Contract, Query
from pml_common.contracts.catalog import QueryType
from pml_common.contracts.scope import Scope
from pml_common.telemetry import vocabulary

log = logging.getLogger(__name__)

Q = TypeVar("Q", bound=Query)
R = TypeVar("R", bound=Contract)

WINDOW = 128
"""Requests of one connection in progress; together with the limit of an inline body this bounds
the memory that a connection takes."""
_MOST_CONNECTIONS = 64
_HANDSHAKE_S = 2.0
_LAST_REPLIES_S = 1.0


@dataclass(frozen=True)
class _Served:
    """A query that is served, and the services that may request it."""

    clients: Collection[str]
    answer: Callable[[Envelope], Awaitable[Envelope]]


class SocketQueryServer:
    """Serves queries to services of this machine that have proved who they are.

    A connection is closed only when none of its requests is in progress: a client whose connection
    is lost may repeat its requests at once, at another replica.
    """

    def __init__(
        self, folder: SocketFolder, exchange: QueryExchange, service: str, instance: str
    ) -> None:
        self.exchange = exchange
        self.service = service
        self._folder = folder
        self._instance = instance
        self._served: dict[str, _Served] = {}
        self._connections: set[_Connection] = set()
        self._answering: set[asyncio.Task[None]] = set()
        self._listener: asyncio.AbstractServer | None = None
        self._stopping = False

    async def serve(
        self,
        query_type: QueryType[Q, R],
        handler: Callable[[Q], Awaitable[R]],
        *,
        scopes: Collection[Scope] | None = None,
    ) -> None:
        """Serve a query until `stop`. Where no socket can be used, logs why: it is served over NATS
        alone."""

        async def handle(query: Q) -> R:
            trace.get_current_span().set_attribute(vocabulary.TRANSPORT, "unix")
            return await handler(query)

        async def answer(request: Envelope) -> Envelope:
            return await self.exchange.answer(query_type, handle, request, INLINE_LIMIT)

        self.exchange.begin()
        served = _Served(query_type.clients, answer)
        self._served.update(dict.fromkeys(names.served_subjects(query_type, scopes), served))
        if self._listener is not None:
            return
        try:
            listening = self._folder.listen(self._instance)
        except SocketUnusable as reason:
            log.warning("no socket for queries, they come over NATS: %s", reason)
            return
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_unix_server(lambda: _Connection(self), sock=listening)

    async def stop(self, timeout: float) -> None:
        """Take no more requests; finish those in progress, cancel them after `timeout` seconds."""
        self._stopping = True
        if self._listener is not None:
            self._folder.remove(self._instance)
            self._listener.close()
        for connection in self._connections:
            connection.leave()
        await finish(set(self._answering), timeout)
        closing = set(self._connections)
        for connection in closing:
            connection.close()
        if closing:
            await asyncio.wait({each.lost for each in closing}, timeout=_LAST_REPLIES_S)

    def admit(self, connection: "_Connection") -> bool:
        """Register a connection, unless there are too many or the server stops."""
        if self._stopping or len(self._connections) >= _MOST_CONNECTIONS:
            return False
        self._connections.add(connection)
        return True

    def forget(self, connection: "_Connection") -> None:
        """Remove a connection that is closed."""
        self._connections.discard(connection)

    def find(self, subject: str, client: str) -> _Served | None:
        """Return the query on a subject if it is served to this client, and now."""
        of_all = self._served.get(names.of_any_scope(subject))
        served = None if self._stopping else self._served.get(subject, of_all)
        return served if served is not None and client in served.clients else None

    def spawn(self, answering: Awaitable[None]) -> asyncio.Task[None]:
        """Work on a request, until `stop`."""
        task = asyncio.ensure_future(answering)
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)
        return task


class _Connection(asyncio.Protocol):
    """One client."""

    def __init__(self, server: SocketQueryServer) -> None:
        self._server = server
        self._transport: asyncio.Transport | None = None
        self._reader = FrameReader(MOST_UNPROVEN)
        self._nonce = handshake.new_nonce()
        self._client: str | None = None
        self._pid = 0
        self._requests: set[asyncio.Task[None]] = set()
        self._writable = asyncio.Event()
        self._writable.set()
        self._refused = False
        loop = asyncio.get_running_loop()
        self.lost: asyncio.Future[None] = loop.create_future()
        self._deadline = loop.call_later(_HANDSHAKE_S, self._expire)

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass
        if not self._server.admit(self):
            self._transport.abort()
            return
        connected: socket.socket = transport.get_extra_info("socket")
        try:
            self._pid = require_own(connected)
        except SocketUnusable as reason:
            self._refuse(reason)
            return
        said = Challenge(service=self._server.service, nonce=self._nonce)
        self._send(Kind.CHALLENGE, 0, said.model_dump_json().encode())

    @override
    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        try:
            for frame in self._reader.feed(data):
                self._received(frame)
        except (FrameError, HandshakeFailed) as error:
            self._refuse(error)

    @override
    def pause_writing(self) -> None:
        self._writable.clear()

    @override
    def resume_writing(self) -> None:
        self._writable.set()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._writable.set()
        self._deadline.cancel()
        self._server.forget(self)
        if not self.lost.done():
            self.lost.set_result(None)

    def leave(self) -> None:
        """Announce that no more requests are taken."""
        if self._client is not None:
            self._send(Kind.LEAVING)

    def close(self) -> None:
        """Close the connection once everything is written."""
        if self._transport is not None:
            self._transport.close()

    def _received(self, frame: Frame) -> None:
        client = self._client
        if client is None:
            if frame.kind is not Kind.HELLO:
                raise HandshakeFailed(f"{frame.kind.name} before the handshake")
            self._greet(handshake.parse(Hello, frame.payload))
        elif frame.kind is Kind.REQUEST:
            self._request(client, frame)
        elif frame.kind is Kind.PING:
            self._send(Kind.PONG)
        else:
            raise FrameError(f"an unexpected frame: {frame.kind.name}")

    def _greet(self, said: Hello) -> None:
        server = self._server
        meeting = Meeting(
            said.service, server.service, self._pid, os.getpid(), said.nonce, self._nonce
        )
        proof = handshake.welcome(said, meeting, server.exchange.identity, WINDOW)
        self._client = said.service
        self._reader.most = MOST_PAYLOAD
        self._deadline.cancel()
        self._send(Kind.WELCOME, 0, proof.model_dump_json().encode())
        log.info("the %s is connected over a socket (pid %d)", said.service, self._pid)

    def _request(self, client: str, frame: Frame) -> None:
        if len(self._requests) >= WINDOW:
            raise FrameError(f"more than {WINDOW} requests at a time")
        request = decode_envelope(frame.payload)
        served = self._server.find(request.subject, client)
        if served is None:
            self._send(Kind.NOT_SERVED, frame.number)
            return
        task = self._server.spawn(self._answer(served, frame.number, request))
        self._requests.add(task)
        task.add_done_callback(self._finished)

    async def _answer(self, served: _Served, number: int, request: Envelope) -> None:
        reply = await served.answer(request)
        await self._writable.wait()
        self._send(Kind.REPLY, number, encode_envelope(reply))

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._requests.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a request over the socket was not answered", exc_info=error)
        if self._refused and not self._requests:
            self.close()

    def _refuse(self, reason: Exception) -> None:
        """Read nothing more, and close the connection once its requests are finished."""
        self._refused = True
        log.warning("a connection of process %d is refused: %s", self._pid, reason)
        if self._transport is not None and self._requests:
            self._transport.pause_reading()
        elif self._transport is not None:
            self._transport.abort()

    def _expire(self) -> None:
        self._refuse(HandshakeFailed(f"no handshake within {_HANDSHAKE_S:g} s"))

    def _send(self, kind: Kind, number: int = 0, payload: bytes = b"") -> None:
        if self._transport is not None:
            self._transport.write(encode_frame(kind, number, payload))
