"""The HTTP client of the transports: isolates the failure of a request."""

import json
from collections.abc import Mapping
from functools import cache
from http import HTTPStatus
from ssl import SSLContext
from typing import Any, cast

import httpx2
from mcp_types import CONNECTION_CLOSED

from pml_common.contracts.tool import JsonObject
from pml_gateway.adapters.mcp_client.oauth import NeedsLogin
from pml_gateway.adapters.mcp_client.transport_state import TransportState

NOT_SENT = "pml/not-sent"
"""`data` of the error of a call that its server certainly never received."""

NO_RESULT = "pml/no-result"
"""`data` of the error of a call that its server answered without a result."""

MAX_RESULT_BYTES = 16 * 1024 * 1024
"""Limit of one message of a server: a line over stdio, a body or an event over HTTP."""
_HTTP_CONNECT_S = 10.0
_HTTP_IDLE_S = 3.0
"""Less than the time after which servers close idle connections (mostly 5 s): a call sent just then
is lost."""
_SESSION_HEADER = "mcp-session-id"
_NO_SUCH_TRANSPORT = (HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED)
"""Answers to `initialize` of servers that only have the HTTP with SSE of before."""
_RESULT_TYPES = ("application/json", "text/event-stream")
_OF_THE_WIRE = ("content-encoding", "content-length", "transfer-encoding")
_NEVER_SENT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
)


@cache
def _authorities() -> SSLContext:
    """Return what connections of this process trust. To read it takes 20 ms for each client."""
    return httpx2.create_ssl_context()


class IsolatingHttpClient(httpx2.AsyncClient):
    """A client that isolates the failure of a request.

    The SDK's transport lets one failed request end the whole connection, and all other calls with
    it. Here the failure becomes the response to that request, and says whether it was ever sent.
    """

    answered_in_body = True
    """Whether the response to a call carries its result."""

    def __init__(
        self, state: TransportState, headers: Mapping[str, str], auth: httpx2.Auth | None = None
    ) -> None:
        super().__init__(
            headers=headers,
            auth=auth,
            verify=_authorities(),
            # Every call has its own deadline, so reading needs none.
            timeout=httpx2.Timeout(_HTTP_CONNECT_S, read=None),
            limits=httpx2.Limits(max_connections=100, keepalive_expiry=_HTTP_IDLE_S),
        )
        self._observed = state

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        try:
            response = await super().send(request, **options)
            if response.headers.get("content-type", "").lower().startswith("application/json"):
                response = await _read(response, request)
        except (_TooLarge, NeedsLogin, httpx2.TransportError, httpx2.HTTPStatusError) as error:
            return self._unsent(request, error)
        return await self._checked(request, response)

    def _unsent(self, request: httpx2.Request, error: Exception) -> httpx2.Response:
        """Return the response in place of the one that there is not."""
        match error:
            case NeedsLogin():
                return self._unauthorised(request)
            case _TooLarge():
                return self._failed(request, str(error), None, None)
            case httpx2.HTTPStatusError():
                return self._failed(request, "no new token could be had", error, NOT_SENT)
            case _ if isinstance(error, _NEVER_SENT):
                what = f"cannot connect to {_shown(request.url)}"
                return self._failed(request, what, error, NOT_SENT)
            case _:
                return self._failed(request, "the connection broke", error, None)

    async def _checked(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        """Return a response, or one in its place where it carries no result."""
        if response.status_code == HTTPStatus.UNAUTHORIZED:
            await response.aclose()
            return self._unauthorised(request)
        if response.status_code == HTTPStatus.NOT_FOUND and _SESSION_HEADER in request.headers:
            await response.aclose()
            return self._failed(request, "the server no longer knows our session", None, NOT_SENT)
        if response.is_error:
            self._observed.note_output(f"HTTP {response.status_code} {response.reason_phrase}")
            if response.status_code in _NO_SUCH_TRANSPORT and _method(request) == "initialize":
                self._observed.refused = response.status_code
        fault = _fault(response, self.answered_in_body)
        if fault is not None and _method(request) == "tools/call":
            await response.aclose()
            return self._failed(request, fault, None, NO_RESULT)
        return response

    def _unauthorised(self, request: httpx2.Request) -> httpx2.Response:
        self._observed.needs_login = True
        return self._failed(request, "the server answered HTTP 401 Unauthorized", None, NOT_SENT)

    def _failed(
        self, request: httpx2.Request, what: str, why: Exception | None, data: str | None
    ) -> httpx2.Response:
        message = f"{what}: {str(why) or type(why).__name__}" if why else what
        self._observed.note_output(message)
        error = {"code": CONNECTION_CLOSED, "message": message, "data": data}
        body = {"jsonrpc": "2.0", "id": None, "error": error}
        return httpx2.Response(HTTPStatus.SERVICE_UNAVAILABLE, json=body, request=request)


def _fault(response: httpx2.Response, in_body: bool) -> str | None:
    """Return why a response carries no result of a tool call that the server received."""
    if response.is_server_error:
        return f"the server answered HTTP {response.status_code} {response.reason_phrase}"
    kind = response.headers.get("content-type", "").lower()
    if in_body and response.is_success and not kind.startswith(_RESULT_TYPES):
        return f"the server answered HTTP {response.status_code} without a result"
    return None


def _method(request: httpx2.Request) -> object:
    """Return the method of the message that a request carries, if any."""
    return message_of(request).get("method")


def message_of(request: httpx2.Request) -> JsonObject:
    """Return the message that a request carries; an empty one where there is none."""
    try:
        message = json.loads(request.content)
    except (ValueError, httpx2.StreamError):
        return {}
    return cast(JsonObject, message) if isinstance(message, dict) else {}


class _TooLarge(Exception):
    """A body is longer than MAX_RESULT_BYTES."""


async def _read(response: httpx2.Response, request: httpx2.Request) -> httpx2.Response:
    """Return the response with its whole body read. Raises _TooLarge."""
    parts: list[bytes] = []
    length = 0
    async for part in response.aiter_bytes():
        parts.append(part)
        length += len(part)
        if length > MAX_RESULT_BYTES:
            await response.aclose()
            raise _TooLarge(f"its answer is longer than {MAX_RESULT_BYTES} bytes")
    headers = [(n, v) for n, v in response.headers.multi_items() if n.lower() not in _OF_THE_WIRE]
    body = b"".join(parts)
    return httpx2.Response(response.status_code, headers=headers, content=body, request=request)


def _shown(url: httpx2.URL) -> str:
    return str(url.copy_with(userinfo=b"", query=None, fragment=None))
