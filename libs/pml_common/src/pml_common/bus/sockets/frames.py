"""The frames on a socket: a length, a kind, the id of a request, a payload. Pure."""

from enum import IntEnum
from struct import Struct
from typing import NamedTuple, cast

from pydantic_core import from_json, to_json

from pml_common.bus.codec import Envelope

_HEAD = Struct("!IBQ")
_ENVELOPE_HEAD = Struct("!I")

INLINE_LIMIT = 1024 * 1024
"""Bodies over this many bytes go through the payload store."""
MOST_PAYLOAD = INLINE_LIMIT + 64 * 1024
"""Bytes of a frame's payload: a body and its headers."""
MOST_UNPROVEN = 1024
"""Bytes of a frame's payload before the sender has proved who it is."""


class Kind(IntEnum):
    """Kinds of frames; those from `CHALLENGE` to `WELCOME` belong to the handshake."""

    CHALLENGE = 1
    HELLO = 2
    WELCOME = 3
    REQUEST = 4
    REPLY = 5
    NOT_SERVED = 6
    """Nothing was done with a request: it may be sent elsewhere as if for the first time."""
    PING = 7
    PONG = 8
    LEAVING = 9
    """The server takes no more requests; it replies to those it has."""


class Frame(NamedTuple):
    """One frame; `number` is the id of its request, 0 where it has none."""

    kind: Kind
    number: int
    payload: bytes


class FrameError(Exception):
    """Bytes that are no frame, or one that is too long."""


def encode_frame(kind: Kind, number: int = 0, payload: bytes = b"") -> bytes:
    """Return the bytes of a frame."""
    return _HEAD.pack(len(payload), kind, number) + payload


class FrameReader:
    """Cuts a stream of bytes into frames; `most` bounds the bytes of a payload."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._unread = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        """Return the frames that are complete with `data`. Raises FrameError, also for a frame
        whose payload has yet to come; nothing can be read after it."""
        self._unread += data
        frames: list[Frame] = []
        at, size = 0, len(self._unread)
        while size - at >= _HEAD.size:
            length, kind, number = _HEAD.unpack_from(self._unread, at)
            if length > self.most:
                raise FrameError(f"a frame of {length} bytes; at most {self.most} are allowed")
            end = at + _HEAD.size + length
            if end > size:
                break
            try:
                known = Kind(kind)
            except ValueError as error:
                raise FrameError(f"a frame of the unknown kind {kind}") from error
            frames.append(Frame(known, number, bytes(self._unread[at + _HEAD.size : end])))
            at = end
        del self._unread[:at]
        return frames


def encode_envelope(envelope: Envelope) -> bytes:
    """Return the payload of a request or a reply."""
    head = to_json((envelope.subject, envelope.headers))
    return _ENVELOPE_HEAD.pack(len(head)) + head + envelope.data


def decode_envelope(payload: bytes) -> Envelope:
    """Parse the payload of a request or a reply. Raises FrameError."""
    if len(payload) < _ENVELOPE_HEAD.size:
        raise FrameError("an envelope without a head")
    (length,) = _ENVELOPE_HEAD.unpack_from(payload)
    body = _ENVELOPE_HEAD.size + length
    try:
        head: object = from_json(payload[_ENVELOPE_HEAD.size : body])
    except ValueError as error:
        raise FrameError(f"an envelope whose head is no JSON: {error}") from error
    if body <= len(payload) and isinstance(head, list):
        subject, headers = [*cast("list[object]", head), None, None][:2]
        if isinstance(subject, str) and isinstance(headers, dict):
            named = cast("dict[str, object]", headers)
            if all(isinstance(value, str) for value in named.values()):
                return Envelope(subject, payload[body:], cast("dict[str, str]", named))
    raise FrameError("an envelope without subject and headers")
