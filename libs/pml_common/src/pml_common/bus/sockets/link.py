"""The client's end of a connection: many requests at a time, told apart by their ids."""

import asyncio
import logging
import os
import socket
from dataclasses import replace
from typing import cast

from typing_extensions import override

from pml_common.bus.codec import Envelope
from pml_common.bus.identity import Identity
from pml_common.bus.sockets import handshake
from pml_common.bus.sockets.folder import require_own
from pml_common.bus.sockets.frames import (
    MOST_PAYLOAD,
    Frame,
    FrameError,
    FrameReader,
    Kind,
    decode_envelope,
    encode_envelope,
    encode_frame,
)
from pml_common.bus.sockets.handshake import Challenge, HandshakeFailed, Meeting, Welcome

log = logging.getLogger(__name__)


class NotServed(Exception):
    """Nothing was done with the request: it may be sent elsewhere as if for the first time."""


class LinkLost(Exception):
    """The other process closed the connection, or died; it is not known what it did."""


class Link(asyncio.Protocol):
    """One connection to a replica of the service `server`.

    A lost connection fails its requests at once, so that they are repeated; by then the other
    process has died, or has finished them (`SocketQueryServer`). Therefore a connection that we
    give up ourselves, because what it sends makes no sense, lets its requests run out of time.
    """

    def __init__(
        self, connected: socket.socket, client: str, server: str, identity: Identity
    ) -> None:
        self._identity = identity
        self._meeting = Meeting(
            client, server, os.getpid(), require_own(connected), handshake.new_nonce(), ""
        )
        self._reader = FrameReader(MOST_PAYLOAD)
        self._transport: asyncio.Transport | None = None
        self._requests: dict[int, asyncio.Future[Envelope]] = {}
        self._last_number = 0
        self._frames = 0
        self._window = 0
        self._silent = self._leaving = self._full = False
        loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[None] = loop.create_future()
        self.lost: asyncio.Future[None] = loop.create_future()

    @property
    def usable(self) -> bool:
        """Whether a request would be sent at once to a process that answers."""
        return not (
            self._leaving or self._silent or self._full or len(self._requests) >= self._window
        )

    async def request(self, envelope: Envelope) -> Envelope:
        """Send a request and return the reply. Raises NotServed, LinkLost; when it is cancelled,
        its late reply is dropped."""
        transport = self._transport
        if transport is None or not self.usable:
            raise NotServed
        self._last_number += 1
        reply: asyncio.Future[Envelope] = asyncio.get_running_loop().create_future()
        self._requests[self._last_number] = reply
        frames = self._frames
        transport.write(encode_frame(Kind.REQUEST, self._last_number, encode_envelope(envelope)))
        try:
            return await reply
        except asyncio.CancelledError:
            if frames == self._frames and not self._silent:
                self._silent = True  # until it answers: it may have been suspended
                self._send(Kind.PING)
            raise

    def close(self) -> None:
        """Close the connection."""
        self._leaving = True
        if self._transport is not None:
            self._transport.close()

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass

    @override
    def data_received(self, data: bytes) -> None:
        try:
            for frame in self._reader.feed(data):
                self._frames += 1
                self._silent = False
                self._received(frame)
        except (FrameError, HandshakeFailed) as error:
            self._give_up(error)

    @override
    def pause_writing(self) -> None:
        self._full = True

    @override
    def resume_writing(self) -> None:
        self._full = False

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._leaving = True
        if not self.ready.done():
            self.ready.set_exception(HandshakeFailed("the connection was closed"))
        if not self.lost.done():
            self.lost.set_result(None)
        for reply in self._requests.values():
            if not reply.done():
                reply.set_exception(LinkLost("the connection was lost"))
        self._requests.clear()

    def _received(self, frame: Frame) -> None:
        match frame.kind:
            case Kind.REPLY | Kind.NOT_SERVED:
                self._answered(frame)
            case Kind.LEAVING:
                self._leaving = True
            case Kind.PONG:
                pass
            case Kind.CHALLENGE if not self._meeting.server_nonce:
                self._prove(handshake.parse(Challenge, frame.payload))
            case Kind.WELCOME if self._meeting.server_nonce and not self.ready.done():
                said = handshake.parse(Welcome, frame.payload)
                handshake.verify(said, self._meeting, self._identity)
                self._window = said.window
                self.ready.set_result(None)
            case _:
                raise FrameError(f"an unexpected frame: {frame.kind.name}")

    def _answered(self, frame: Frame) -> None:
        reply = self._requests.pop(frame.number, None)
        if reply is None:
            raise FrameError(f"a reply to no request: {frame.number}")
        if reply.done():
            return  # nobody waits for it any more
        if frame.kind is Kind.NOT_SERVED:
            reply.set_exception(NotServed())
            return
        reply.set_result(decode_envelope(frame.payload))

    def _prove(self, challenge: Challenge) -> None:
        self._meeting = replace(self._meeting, server_nonce=challenge.nonce)
        said = handshake.hello(challenge, self._meeting, self._identity)
        self._send(Kind.HELLO, said.model_dump_json().encode())

    def _give_up(self, error: Exception) -> None:
        log.warning("the connection to the %s is given up: %s", self._meeting.server, error)
        self._requests = {}  # their futures wait: the other process may be working on them
        if not self.ready.done():
            self.ready.set_exception(error)
        self.close()

    def _send(self, kind: Kind, payload: bytes = b"") -> None:
        if self._transport is not None:
            self._transport.write(encode_frame(kind, 0, payload))
