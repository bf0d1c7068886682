"""How much and for how long a request may say: httptools takes any length, uvicorn any time."""

import asyncio
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

MOST_BYTES: Final = 64 * 1024
"""Of a request beside its body (request line, headers, chunk extensions, trailers); as h11."""

_FRAMING_PER_BYTE: Final = 8
"""More of it for each byte of a body: a chunk of one byte takes five."""

_SLICE: Final = 4096
"""So exactly the bound is kept, whatever one read of the socket brings: bytes at a time."""


@dataclass(frozen=True)
class Waits:
    """Seconds from a request's first byte to the end of its head, and from there to its last."""

    head_s: float = 10.0
    body_s: float = 30.0


class BoundedHeads(HttpToolsProtocol):
    """Reads requests. One that says too much beside its body is answered with 431, one that is not
    whole in time with 408; the connection ends."""

    waits: ClassVar[Waits] = Waits()

    _beside = 0
    _body = 0
    _body_in_slice = 0
    _whole = False
    _at: Literal["idle", "head", "body"] = "idle"
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Somebody connected, who has as long for the first byte as for a head."""
        super().connection_made(transport)
        self._wait(self.waits.head_s)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection ended."""
        self._wait(None)
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """The first byte of a request came."""
        super().on_message_begin()
        self._at = "head"
        self._wait(self.waits.head_s)

    def on_headers_complete(self) -> None:
        """A head is whole."""
        super().on_headers_complete()
        self._at = "body"
        self._wait(self.waits.body_s)

    def on_body(self, body: bytes) -> None:
        """More of a body."""
        self._body_in_slice += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """A request is whole."""
        self._whole, self._at = True, "idle"
        self._wait(None)
        super().on_message_complete()

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        start = 0
        while start < len(data) and not self.transport.is_closing():
            room = MOST_BYTES + _FRAMING_PER_BYTE * self._body - self._beside
            if room <= 0:
                self._refuse(b"431 Request Header Fields Too Large", b"the headers are too long\n")
                return
            part = data[start : start + min(room, _SLICE)]
            self._take(part)
            start += len(part)

    def _take(self, part: bytes) -> None:
        self._body_in_slice, self._whole = 0, False
        super().data_received(part)
        if self._whole:
            self._beside = self._body = 0
        else:
            self._body += self._body_in_slice
            self._beside += len(part) - self._body_in_slice

    def _wait(self, seconds: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self.loop.call_later(seconds, self._late)

    def _late(self) -> None:
        """End what did not come in time. While the client may not send, or an earlier request is
        being answered, the time begins again: the delay is ours."""
        if self.flow.read_paused or (self._at == "head" and not self._answered()):
            self._wait(self.waits.body_s)
        elif self._at == "idle":
            self.transport.close()
        else:
            self._refuse(b"408 Request Timeout", b"the request was not whole in time\n")

    def _refuse(self, status: bytes, why: bytes) -> None:
        """Answer in place of the application, where nothing else is being answered, and end the
        connection."""
        if self.transport.is_closing():
            return
        silent = self._begun() if self._at == "body" else not self._answered()
        if not silent:
            self.transport.write(
                b"HTTP/1.1 %b\r\ncontent-type: text/plain; charset=utf-8\r\n"
                b"content-length: %d\r\nconnection: close\r\n\r\n%b" % (status, len(why), why)
            )
        self.transport.close()

    def _answered(self) -> bool:
        """Whether each earlier request got its whole answer."""
        cycle = cast(RequestResponseCycle | None, self.cycle)
        return cycle is None or cycle.response_complete

    def _begun(self) -> bool:
        """Whether the application began to answer."""
        cycle = cast(RequestResponseCycle | None, self.cycle)
        return cycle is not None and cycle.response_started


def bounded_by(waits: Waits) -> type[BoundedHeads]:
    """The same with other times: uvicorn makes a reader for each connection by itself."""

    class Configured(BoundedHeads):
        pass

    Configured.waits = waits
    return Configured
