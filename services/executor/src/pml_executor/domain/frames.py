"""Frames between executor and sandbox process, without I/O (the other end: runtime/frames.js).

A frame is four bytes of big-endian length and a body. The first inbound body is JSON, each later
one is one byte of addressee and JSON; every outbound one is the process's secret, one byte of
origin, and JSON. A program can write to its process's stdout but does not know the secret, so
nothing it writes there passes for a frame.
"""

import hmac
import struct
from dataclasses import dataclass
from typing import Literal

_LENGTH = struct.Struct(">I")

Origin = Literal["host", "program"]
_ORIGINS: dict[bytes, Origin] = {b"h": "host", b"p": "program"}
_MARKS: dict[Origin, bytes] = {origin: mark for mark, origin in _ORIGINS.items()}
_OVERHEAD = 1024


class ForgedOutput(Exception):
    """The process wrote something without its host's secret."""


@dataclass(frozen=True)
class Frame:
    """One authenticated body and its origin; a program's is still not to be trusted."""

    origin: Origin
    body: bytes


def encode(body: bytes, to: Origin | None = None) -> bytes:
    """Encode one inbound frame; only the first one has no addressee."""
    mark = b"" if to is None else _MARKS[to]
    return _LENGTH.pack(len(mark) + len(body)) + mark + body


class FrameDecoder:
    """Decodes a stream of bytes into authenticated frames."""

    def __init__(self, secret: str, max_body_bytes: int) -> None:
        self._secret = secret.encode()
        self._max = len(self._secret) + 1 + 4 * max_body_bytes + _OVERHEAD
        self._pending = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        """Return the frames that `data` completes. Raises ForgedOutput at the first frame without
        the secret."""
        self._pending += data
        frames: list[Frame] = []
        while (body := self._next_body()) is not None:
            frames.append(self._open(body))
        return frames

    @property
    def midway(self) -> bool:
        """Whether a frame is incomplete."""
        return bool(self._pending)

    def _next_body(self) -> bytes | None:
        if len(self._pending) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._pending)
        if length > self._max:
            raise ForgedOutput(f"a frame of {length} bytes was announced")
        end = _LENGTH.size + length
        if len(self._pending) < end:
            return None
        body = bytes(self._pending[_LENGTH.size : end])
        del self._pending[:end]
        return body

    def _open(self, body: bytes) -> Frame:
        size = len(self._secret)
        origin = _ORIGINS.get(body[size : size + 1])
        if origin is None or not hmac.compare_digest(body[:size], self._secret):
            raise ForgedOutput("a frame without the process's secret")
        return Frame(origin, body[size + 1 :])
