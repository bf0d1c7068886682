"""Sessions over HTTP: requests of clients that begin with a handshake, before the SDK answers them.

The SDK answers each POST on its own. Session ids are given and checked here, and what a client
says about its open calls is taken here.
"""

from collections.abc import Mapping
from typing import Any, Final, cast

from mcp.server.transport_security import (
    RequestBodyLimitMiddleware,
    TransportSecurityMiddleware,
    TransportSecuritySettings,
)
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    InitializeRequestParams,
    jsonrpc_message_adapter,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION
from pydantic import ValidationError
from pydantic_core import from_json
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pml_common.bus.errors import BusUnavailable
from pml_gateway.application.client_sessions import Sessions
from pml_gateway.domain.api.client_session import ClientSession
from pml_gateway.domain.api.errors import Busy, Forbidden
from pml_gateway.entrypoints.mcp.client_messages import ClientMessages, concerns_open_call
from pml_gateway.entrypoints.mcp.client_requests import PostStream
from pml_gateway.entrypoints.mcp.http_exchange import EXCHANGE, HttpExchange
from pml_gateway.entrypoints.mcp.large_answers import large_answers
from pml_gateway.entrypoints.mcp.session_streams import SessionStreams
from pml_gateway.ports import Caller, Callers, Replicas

SESSION_HEADER: Final = "mcp-session-id"
VERSION_HEADER: Final = "mcp-protocol-version"

_LAST_EVENT_HEADER: Final = "last-event-id"
_EVENT_STREAMS: Final = ("text/event-stream", "text/*", "*/*")

_NO_MESSAGE: Final = (
    'the body is no JSON-RPC message: send one object with "jsonrpc": "2.0", a "method" and, in a '
    'request, an "id" that is a text or a whole number'
)

_POST_ALONE: Final = Response(status_code=405, headers={"Allow": "POST"})
_IN_SESSIONS: Final = Response(status_code=405, headers={"Allow": "GET, POST, DELETE"})


class HttpSessions:
    """ASGI application in front of the SDK's, `inner`. Clients of revision 2026-07-28, and older
    ones that name no session, have POST alone."""

    def __init__(
        self,
        inner: ASGIApp,
        callers: Callers,
        sessions: Sessions,
        streams: SessionStreams,
        messages: ClientMessages,
        replicas: Replicas,
        security: TransportSecuritySettings,
        max_body_bytes: int,
    ) -> None:
        self._inner = inner
        self._callers = callers
        self._sessions = sessions
        self._streams = streams
        self._messages = messages
        self._replicas = replicas
        self._security = TransportSecurityMiddleware(security)
        self._posted = RequestBodyLimitMiddleware(self._guarded, max_body_bytes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request."""
        request = Request(scope, receive)
        if scope["method"] == "POST":
            post = self._inner if _is_modern(request) else self._posted
            async with large_answers(send) as bounded:
                await post(scope, receive, bounded)
        elif _is_modern(request) or SESSION_HEADER not in request.headers:
            await _POST_ALONE(scope, receive, send)
        elif scope["method"] not in ("GET", "DELETE"):
            await _IN_SESSIONS(scope, receive, send)
        else:
            await self._guarded(scope, receive, send)

    async def _guarded(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer what pages of other sites did not send; where we cannot, say why."""
        request = Request(scope, receive)
        is_post = scope["method"] == "POST"
        response = await self._security.validate_request(request, is_post=is_post)
        try:
            if response is None:
                response = await (self._post if is_post else self._in_session)(request, send)
        except BusUnavailable as error:
            message = f"sessions cannot be read now: {error}; try again later"
            response = _error(503, INTERNAL_ERROR, message, {"Retry-After": "1"})
        except Busy as error:
            retry = {"Retry-After": str(error.retry_after_s)}
            response = _error(429, INVALID_REQUEST, str(error), retry)
        if response is not None:
            await response(scope, receive, send)

    async def _in_session(self, request: Request, send: Send) -> Response | None:
        """Answer GET or DELETE."""
        caller = await self._caller(request)
        if caller is None:
            return _error(403, INVALID_REQUEST, "this credential is not allowed")
        session = await self._sessions.find(caller, request.headers[SESSION_HEADER])
        if session is None:
            return _no_session()
        if request.method == "DELETE":
            await self._sessions.end(session)
            self._streams.end_session(session.key)
            await self._replicas.tell_ended(session)
            return Response(status_code=204)
        if not _accepts_events(request):
            return _error(406, INVALID_REQUEST, "a stream is text/event-stream: accept that")
        return self._streams.open(session, request.headers.get(_LAST_EVENT_HEADER))

    async def _post(self, request: Request, send: Send) -> Response | None:
        """Answer a POST, or let the SDK do so."""
        caller, body = await self._caller(request), await request.body()
        receive, (message, is_message) = _replayed(body, request.receive), _read(body)
        session_id = request.headers.get(SESSION_HEADER)
        is_ours = None not in (caller, session_id) and concerns_open_call(message)
        if not is_message and not is_ours:
            return _error(400, INVALID_REQUEST, _NO_MESSAGE)
        if caller is not None and message.get("method") == "initialize":
            begun = await self._begin(caller, message)
            await self._inner(request.scope, receive, _with_session(begun, send))
        elif caller is None or session_id is None:
            await self._inner(request.scope, receive, send)
        elif (session := await self._sessions.find(caller, session_id)) is None:
            return _no_session()
        elif concerns_open_call(message):
            await self._messages.take(session, message)
            return Response(status_code=202)
        else:
            await self._exchange(session, request.scope, receive, send)
        return None

    async def _exchange(
        self, session: ClientSession, scope: Scope, receive: Receive, send: Send
    ) -> None:
        stream = PostStream(send)
        exchange = HttpExchange(session, stream, self._messages.requests)
        try:
            await self._inner({**scope, EXCHANGE: exchange}, receive, stream.send)
        finally:
            self._messages.requests.lose(stream)

    async def _begin(self, caller: Caller, message: Mapping[str, Any]) -> str | None:
        """Return the id of a new session; None where the SDK is about to refuse its handshake."""
        try:
            asked = InitializeRequestParams.model_validate(message.get("params"), by_name=False)
        except ValidationError:
            return None
        version = asked.protocol_version
        return await self._sessions.begin(
            caller,
            version if version in HANDSHAKE_PROTOCOL_VERSIONS else LATEST_HANDSHAKE_VERSION,
            asked.capabilities.model_dump(mode="json", by_alias=True, exclude_none=True),
            asked.client_info.model_dump(mode="json", by_alias=True, exclude_none=True),
        )

    async def _caller(self, request: Request) -> Caller | None:
        try:
            return await self._callers.identify(request.headers)
        except Forbidden:
            return None  # the handlers refuse the request


def _is_modern(request: Request) -> bool:
    version = request.headers.get(VERSION_HEADER)
    return version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS


def _accepts_events(request: Request) -> bool:
    accepted = request.headers.get("accept", "*/*").lower().split(",")
    return any(each.split(";")[0].strip() in _EVENT_STREAMS for each in accepted)


def _read(body: bytes) -> tuple[Mapping[str, Any], bool]:
    """Return the object in a body, an empty one for anything else, and whether the SDK reads a
    JSON-RPC message in it. What is no JSON counts as one: the SDK refuses it in plain words, but
    JSON that is no message in those of its validator."""
    try:
        found = from_json(body)
    except ValueError:
        return {}, True
    message = cast("Mapping[str, Any]", found if isinstance(found, dict) else {})
    try:
        jsonrpc_message_adapter.validate_python(found, by_name=False)
    except ValidationError:
        return message, False
    return message, True


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that begins with a body that was read."""
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return pending.pop() if pending else await receive()

    return replay


def _with_session(session_id: str | None, send: Send) -> Send:
    """Give the response the header of a new session."""

    async def send_with_session(message: Message) -> None:
        if session_id is not None and message["type"] == "http.response.start":
            header = (SESSION_HEADER.encode(), session_id.encode())
            message = {**message, "headers": [*message.get("headers", ()), header]}
        await send(message)

    return send_with_session


def _no_session() -> Response:
    message = (
        "there is no such session: it was ended, was not used for long, or belongs to another "
        "credential; begin a new one with initialize"
    )
    return _error(404, INVALID_REQUEST, message)


def _error(
    status: int, code: int, message: str, headers: Mapping[str, str] | None = None
) -> Response:
    content = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}
    return JSONResponse(content, status, headers)
