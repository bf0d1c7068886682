"""Requests to the MCP client of an open call, on the stream on which it awaits the answer.

The client answers with a request of its own, in the same session, perhaps at another replica.
"""

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, METHOD_NOT_FOUND, REQUEST_TIMEOUT
from pydantic import JsonValue
from starlette.types import Message, Send
from typing_extensions import override

from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.api.client_session import ClientSession
from pml_gateway.entrypoints.mcp.large_answers import is_event_stream
from pml_gateway.ports import ClientRefused, ClientSide

_LAST_WORD_S: Final = 1.0


class PostStream:
    """The event stream that answers one POST; messages can be written between its events."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._writing = asyncio.Lock()
        self._open = asyncio.Event()
        self.lost = False

    async def send(self, message: Message) -> None:
        """Pass on a part of the response; each is a whole event."""
        async with self._writing:
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                self.lost = True
            await self._send(message)
        if message["type"] == "http.response.start" and is_event_stream(message):
            self._open.set()

    async def write(self, message: JsonObject) -> None:
        """Send a message of our own. Raises ClientRefused where the stream has ended."""
        await self._open.wait()
        body = f"event: message\r\ndata: {json.dumps(message)}\r\n\r\n".encode()
        async with self._writing:
            if self.lost:
                raise _gone()
            await self._send({"type": "http.response.body", "body": body, "more_body": True})


@dataclass(frozen=True)
class _Asked:
    stream: PostStream
    answer: asyncio.Future[JsonObject]


class ClientRequests:
    """The requests to clients that await an answer in this process, by session and request id."""

    def __init__(self) -> None:
        self._asked: dict[tuple[str, str], _Asked] = {}

    def has_of(self, session_key: str) -> bool:
        """Whether an answer of this session is awaited here."""
        return any(key == session_key for key, _ in self._asked)

    def answer(self, session_key: str, answer: Mapping[str, JsonValue]) -> bool:
        """Take a JSON-RPC response; return whether it was awaited here. Only the session to which
        the request went can answer it."""
        request_id = answer.get("id")
        asked = self._asked.get((session_key, request_id)) if isinstance(request_id, str) else None
        if asked is None:
            return False
        if not asked.answer.done():
            result, error = answer.get("result"), answer.get("error")
            if isinstance(result, dict):
                asked.answer.set_result(result)
            else:
                asked.answer.set_exception(_refusal_of(error))
        return True

    def lose(self, stream: PostStream) -> None:
        """Refuse the requests of a stream that has ended: their client is gone."""
        stream.lost = True
        for asked in self._asked.values():
            if asked.stream is stream and not asked.answer.done():
                asked.answer.set_exception(_gone())

    async def request(
        self,
        session_key: str,
        stream: PostStream,
        method: str,
        params: JsonObject,
        timeout_s: float,
    ) -> JsonObject:
        """Send a request and return its result. Raises ClientRefused."""
        request_id = f"pml-{uuid4().hex}"
        asked = _Asked(stream, asyncio.get_running_loop().create_future())
        self._asked[session_key, request_id] = asked
        head: JsonObject = {"jsonrpc": "2.0", "id": request_id}
        try:
            async with asyncio.timeout(timeout_s):
                await stream.write({**head, "method": method, "params": params})
                return await asked.answer
        except TimeoutError as error:
            await _withdraw(stream, request_id, "it was not answered in time")
            message = f"the client did not answer {method} within {timeout_s:g} s"
            raise ClientRefused(REQUEST_TIMEOUT, message) from error
        except asyncio.CancelledError:
            await _withdraw(stream, request_id, "the call that it belongs to was cancelled")
            raise
        finally:
            del self._asked[session_key, request_id]
            if not asked.answer.cancel() and not asked.answer.cancelled():
                asked.answer.exception()  # read, even if it came too late


async def _withdraw(stream: PostStream, request_id: str, reason: str) -> None:
    params: JsonObject = {"requestId": request_id, "reason": reason}
    with suppress(ClientRefused, TimeoutError):
        async with asyncio.timeout(_LAST_WORD_S):
            await stream.write(
                {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
            )


def _gone() -> ClientRefused:
    return ClientRefused(CONNECTION_CLOSED, "the client is gone: it awaits no answer any more")


def _refusal_of(error: JsonValue) -> ClientRefused:
    if not isinstance(error, dict):
        return ClientRefused(INTERNAL_ERROR, "the client answered with no result and no error")
    code, message = error.get("code"), error.get("message")
    return ClientRefused(code if isinstance(code, int) else INTERNAL_ERROR, f"{message}")


@dataclass(frozen=True)
class SessionClient(ClientSide):
    """A client with a session, while its call is open."""

    session: ClientSession
    stream: PostStream
    requests: ClientRequests

    @property
    @override
    def capabilities(self) -> JsonObject:
        return self.session.capabilities

    @property
    @override
    def takes_requests(self) -> bool:
        return True

    @override
    async def request(self, method: str, params: JsonObject, timeout_s: float) -> JsonObject:
        return await self.requests.request(self.session.key, self.stream, method, params, timeout_s)


@dataclass(frozen=True)
class EnvelopeClient(ClientSide):
    """A client of revision 2026-07-28, which is asked by results (`input_required`) alone."""

    declared: JsonObject

    @property
    @override
    def capabilities(self) -> JsonObject:
        return self.declared

    @property
    @override
    def takes_requests(self) -> bool:
        return False

    @override
    async def request(self, method: str, params: JsonObject, timeout_s: float) -> JsonObject:
        message = f"a client of revision 2026-07-28 takes no requests, so no {method}"
        raise ClientRefused(METHOD_NOT_FOUND, message)
