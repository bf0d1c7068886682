"""Reading of requests, with bounds on size and time: httptools and uvicorn have none."""

import asyncio
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

MAX_OVERHEAD: Final = 64 * 1024
"""Bytes besides the body (request line, headers, chunk extensions, trailers); as in h11."""

_FRAMING_PER_BYTE: Final = 8
"""More overhead allowed per byte of the body: the framing of a chunk of one byte takes five."""

_SLICE: Final = 4096
"""Bytes parsed at a time, so that the bound holds exactly for reads of any size."""


@dataclass(frozen=True)
class ReadTimeouts:
    """Seconds from a request's first byte to the end of its headers, and from there to its end."""

    head_s: float = 10.0
    body_s: float = 30.0


class BoundedHttpProtocol(HttpToolsProtocol):
    """Reads requests. Responds 431 to too much overhead and 408 to an incomplete request after its
    time; then closes the connection."""

    timeouts: ClassVar[ReadTimeouts] = ReadTimeouts()

    _overhead = 0
    _body = 0
    _body_in_slice = 0
    _complete = False
    _state: Literal["idle", "head", "body"] = "idle"
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer: the first byte has as long as the headers."""
        super().connection_made(transport)
        self._set_timer(self.timeouts.head_s)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self._set_timer(None)
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Start the timer of the headers at the first byte of a request."""
        super().on_message_begin()
        self._state = "head"
        self._set_timer(self.timeouts.head_s)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header without the blanks around its value, of which httptools keeps those behind
        (RFC 9110, 5.5)."""
        super().on_header(name, value.strip(b" \t"))

    def on_headers_complete(self) -> None:
        """Start the timer of the body."""
        super().on_headers_complete()
        self._state = "body"
        self._set_timer(self.timeouts.body_s)

    def on_body(self, body: bytes) -> None:
        """Count the bytes of the body."""
        self._body_in_slice += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Stop the timer."""
        self._complete, self._state = True, "idle"
        self._set_timer(None)
        super().on_message_complete()

    def data_received(self, data: bytes) -> None:
        """Parse received bytes within the bound."""
        start = 0
        while start < len(data) and not self.transport.is_closing():
            room = MAX_OVERHEAD + _FRAMING_PER_BYTE * self._body - self._overhead
            if room <= 0:
                self._reject(b"431 Request Header Fields Too Large", b"the headers are too long\n")
                return
            part = data[start : start + min(room, _SLICE)]
            self._take(part)
            start += len(part)

    def _take(self, part: bytes) -> None:
        self._body_in_slice, self._complete = 0, False
        super().data_received(part)
        if self._complete:
            self._overhead = self._body = 0
        else:
            self._body += self._body_in_slice
            self._overhead += len(part) - self._body_in_slice

    def _set_timer(self, seconds: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self.loop.call_later(seconds, self._on_timeout)

    def _on_timeout(self) -> None:
        """End a request that is late. Restart the timer while reading is paused or an earlier
        request is being answered: then the delay is not the client's."""
        if self.flow.read_paused or (self._state == "head" and not self._is_answered()):
            self._set_timer(self.timeouts.body_s)
        elif self._state == "idle":
            self.transport.close()
        else:
            self._reject(b"408 Request Timeout", b"the request was incomplete after its time\n")

    def _reject(self, status: bytes, why: bytes) -> None:
        """Respond in place of the application, unless another response is under way, and close the
        connection."""
        if self.transport.is_closing():
            return
        is_answering = self._has_begun() if self._state == "body" else not self._is_answered()
        if not is_answering:
            self.transport.write(
                b"HTTP/1.1 %b\r\ncontent-type: text/plain; charset=utf-8\r\n"
                b"content-length: %d\r\nconnection: close\r\n\r\n%b" % (status, len(why), why)
            )
        self.transport.close()

    def _is_answered(self) -> bool:
        """Whether every earlier request got its complete response."""
        cycle = cast(RequestResponseCycle | None, self.cycle)
        return cycle is None or cycle.response_complete

    def _has_begun(self) -> bool:
        """Whether the application began its response."""
        cycle = cast(RequestResponseCycle | None, self.cycle)
        return cycle is not None and cycle.response_started


def protocol_with(timeouts: ReadTimeouts) -> type[BoundedHttpProtocol]:
    """Return the protocol with other timeouts; a class, since uvicorn instantiates it."""

    class Configured(BoundedHttpProtocol):
        pass

    Configured.timeouts = timeouts
    return Configured
