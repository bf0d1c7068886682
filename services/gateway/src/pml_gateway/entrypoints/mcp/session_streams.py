"""Event streams of sessions (GET): notifications of changed lists, and log messages.

An event's id is the time of the change that it tells of. A client that comes back with one, or for
the first time, is told of what has changed since, or since its session began, by any replica. What
changed before this process began is not known here, and counts as changed then.
"""

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, Callable, Set
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from fastapi.sse import KEEPALIVE_COMMENT
from mcp_types.version import is_version_at_least
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from pml_common.bus.errors import BusUnavailable
from pml_common.contracts.tool import JsonObject
from pml_gateway.application.client_sessions import Sessions
from pml_gateway.domain.api.client_session import (
    ClientSession,
    caller_key,
    event_id,
    told_until,
)
from pml_gateway.domain.api.errors import Busy
from pml_gateway.domain.api.log_levels import LogLevel, reaches
from pml_gateway.ports import Caller, LogMessage

TOOLS_CHANGED: Final = "notifications/tools/list_changed"
RESOURCES_CHANGED: Final = "notifications/resources/list_changed"
PROMPTS_CHANGED: Final = "notifications/prompts/list_changed"
_LISTS: Final[tuple[str, ...]] = (TOOLS_CHANGED, RESOURCES_CHANGED, PROMPTS_CHANGED)

_TOGETHER_S: Final = 0.2
"""Changes within this time are one notification."""
_CLOCKS_DIFFER_BY: Final = timedelta(seconds=2)
"""Replicas may date, or hear of, one change so differently. Told twice is better than never."""
_RENEW_AFTER_S: Final = 60.0
_RETRY_AFTER_S: Final = 10
_MOST_MESSAGES: Final = 200
"""Log messages that wait for a slow reader; older ones are left out."""
_PRIMED_SINCE: Final = "2025-11-25"
"""The revision whose clients expect events without data."""
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",
    # A client that comes back does so on another connection, perhaps to another gateway.
    "Connection": "close",
}


@dataclass(frozen=True)
class StreamLimits:
    """At most `streams` of a caller are open in one process; each gets a comment after `beat_s`
    seconds without an event, so that proxies do not close it."""

    streams: int = 256
    beat_s: float = 15.0


USUAL_LIMITS: Final = StreamLimits()


@dataclass(eq=False)
class _Stream:
    session: ClientSession
    pending: dict[str, datetime] = field(default_factory=dict[str, datetime])
    messages: deque[JsonObject] = field(
        default_factory=lambda: deque[JsonObject](maxlen=_MOST_MESSAGES)
    )
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    ended: bool = False

    def end(self) -> None:
        self.ended = True
        self.wake.set()


class SessionStreams:
    """The open streams of this process."""

    def __init__(
        self,
        sessions: Sessions,
        now: Callable[[], datetime],
        limits: StreamLimits = USUAL_LIMITS,
    ) -> None:
        self._sessions = sessions
        self._now = now
        self._limits = limits
        self._changed: dict[str, datetime] = dict.fromkeys(_LISTS, now())
        self._streams: set[_Stream] = set()
        self._ending = False

    def changed(self, method: str) -> None:
        """Send this notification to every client."""
        self._changed[method] = at = self._now()
        for stream in self._streams:
            stream.pending[method] = at
            stream.wake.set()

    def log(self, message: LogMessage, callers: Set[Caller | None]) -> None:
        """Send a server's log message to the sessions that want it: of these callers, or of all
        where there are none."""
        keys = {caller_key(each.scope, each.principal) for each in callers if each is not None}
        for stream in self._streams:
            session = stream.session
            if callers and session.caller not in keys:
                continue
            if reaches(message.level, session.log_level):
                stream.messages.append(message.params)
                stream.wake.set()

    def set_log_level(self, session_key: str, level: LogLevel) -> None:
        """Send a session's streams here log messages of this level and above."""
        for stream in self._streams:
            if stream.session.key == session_key:
                stream.session = stream.session.model_copy(update={"log_level": level})

    def end(self) -> None:
        """End every stream; later ones end at once."""
        self._ending = True
        for stream in self._streams:
            stream.end()

    def end_session(self, session_key: str) -> None:
        """End the streams of a session."""
        for stream in self._streams:
            if stream.session.key == session_key:
                stream.end()

    def has_of(self, session_key: str) -> bool:
        """Whether a stream of this session is open here."""
        return any(stream.session.key == session_key for stream in self._streams)

    @property
    def count(self) -> int:
        """Number of open streams."""
        return len(self._streams)

    def open(self, session: ClientSession, last_event_id: str | None) -> StreamingResponse:
        """Return the response to a request for a stream. Raises Busy."""
        most = self._limits.streams
        if sum(each.session.caller == session.caller for each in self._streams) >= most:
            raise Busy(
                f"this credential has {most} open event streams here; close one", _RETRY_AFTER_S
            )
        told = told_until(last_event_id, session.begun_at, self._now())
        stream, since = _Stream(session), told - _CLOCKS_DIFFER_BY
        stream.pending.update((how, at) for how, at in self._changed.items() if at > since)
        self._streams.add(stream)
        if self._ending:
            stream.ended = True
        return _Response(self._events(stream, told), self._streams, stream)

    async def _events(self, stream: _Stream, told: datetime) -> AsyncGenerator[bytes]:
        yield _opening(stream.session, told)
        renewed = asyncio.get_running_loop().time()
        while not stream.ended:
            while stream.messages:
                yield _event("notifications/message", stream.messages.popleft())
            if stream.pending:
                yield _notifications(stream)
                await asyncio.sleep(_TOGETHER_S)
                continue
            stream.wake.clear()
            try:
                async with asyncio.timeout(self._limits.beat_s):
                    await stream.wake.wait()
            except TimeoutError:
                yield KEEPALIVE_COMMENT
            if (now := asyncio.get_running_loop().time()) - renewed > _RENEW_AFTER_S:
                renewed = now
                if not await self._lives(stream):
                    return

    async def _lives(self, stream: _Stream) -> bool:
        try:
            found = await self._sessions.renew(stream.session)
        except BusUnavailable:
            return True
        if found is not None:
            stream.session = found
        return found is not None


class _Response(StreamingResponse):
    """A response whose stream is closed at its end, whatever the reason."""

    media_type = "text/event-stream"

    def __init__(
        self, content: AsyncGenerator[bytes], streams: set[_Stream], stream: _Stream
    ) -> None:
        super().__init__(content, headers=_HEADERS)
        self._content = content
        self._streams = streams
        self._stream = stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream until the end or until the client disconnects."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._streams.discard(self._stream)
            await self._content.aclose()


def _opening(session: ClientSession, told: datetime) -> bytes:
    """Return the first bytes: for clients that know it, an event without data, from whose id they
    resume."""
    if is_version_at_least(session.protocol_version, _PRIMED_SINCE):
        return f"id: {event_id(told)}\nretry: 1000\ndata: \n\n".encode()
    return b": open\n\n"


def _notifications(stream: _Stream) -> bytes:
    """Take what is pending, as events with the id of the last change."""
    pending, stream.pending = stream.pending, {}
    last = event_id(max(pending.values()))
    return b"".join(
        f"id: {last}\nevent: message\ndata: {_notification(how)}\n\n".encode() for how in pending
    )


def _event(method: str, params: JsonObject) -> bytes:
    """Return an event that nobody resumes from: what was logged while a client is away is lost."""
    said = json.dumps({"jsonrpc": "2.0", "method": method, "params": params})
    return f"event: message\ndata: {said}\n\n".encode()


def _notification(method: str) -> str:
    return json.dumps({"jsonrpc": "2.0", "method": method})
