"""The transports to MCP servers: the SDK's, extended to report their faults and ends."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self, cast

import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import CONNECTION_CLOSED

from pml_common.contracts.tool import JsonObject
from pml_gateway.adapters.mcp_client.listings import with_usable_tools
from pml_gateway.adapters.mcp_client.stderr import stderr_log
from pml_gateway.adapters.mcp_client.stdio import child_streams
from pml_gateway.adapters.mcp_client.streams import ReadStream, WriteStream
from pml_gateway.domain.servers.server_config import ServerConfig, StdioServer

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
_RESULT_TYPES = ("application/json", "text/event-stream")
_OF_THE_WIRE = ("content-encoding", "content-length", "transfer-encoding")
_NEVER_SENT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
)

Streams = tuple[ReadStream[SessionMessage | Exception], WriteStream[SessionMessage]]


@dataclass
class TransportState:
    """Observed state of a connection's transport: whether it ended, the last output of the server,
    and the server's fault that ended it. `version` is the protocol's, once it is agreed on."""

    ended: asyncio.Event = field(default_factory=asyncio.Event)
    last_output: str = ""
    fault: str = ""
    version: str = ""

    def note_output(self, text: str) -> None:
        """Store output that may explain the end."""
        self.last_output = text

    def note_fault(self, fault: str) -> None:
        """Store why the connection ends."""
        self.fault = fault


@asynccontextmanager
async def open_streams(
    name: str,
    server: ServerConfig,
    environment: Mapping[str, str],
    state: TransportState,
) -> AsyncGenerator[Streams]:
    """Open streams to one server; its child process, if any, has ended when the context exits."""
    if isinstance(server, StdioServer):
        async with stderr_log(name, state.note_output) as errlog, AsyncExitStack() as stack:
            child = child_streams(
                name, server, environment, errlog, MAX_RESULT_BYTES, state.note_fault
            )
            try:
                reads, writes = await stack.enter_async_context(child)
            except OSError as error:  # on uvloop it does not name the command
                error.filename = error.filename or server.command
                raise
            errlog.close()
            yield _ObservedStream(reads, state), writes
        return
    # Every call has its own deadline, so reading needs none.
    timeout = httpx2.Timeout(_HTTP_CONNECT_S, read=None)
    limits = httpx2.Limits(max_connections=100, keepalive_expiry=_HTTP_IDLE_S)
    async with (
        _HttpClient(state, headers=server.headers, timeout=timeout, limits=limits) as http,
        streamable_http_client(
            server.url, http_client=http, max_sse_event_size=MAX_RESULT_BYTES
        ) as (reads, writes),
    ):
        yield _ObservedStream(reads, state), writes


class _ObservedStream:
    """A read stream that sets `ended` when its reader leaves it, which the SDK's session does not
    report, and that sets malformed tools of a listing aside."""

    def __init__(
        self, reads: ReadStream[SessionMessage | Exception], state: TransportState
    ) -> None:
        self._reads = reads
        self._state = state

    @property
    def last_context(self) -> object:
        """The sender's context variables, where the transport carries them."""
        return getattr(self._reads, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        return self._checked(await self._reads.receive())

    async def aclose(self) -> None:
        await self._reads.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return self._checked(await self._reads.__anext__())

    async def __aenter__(self) -> Self:
        await self._reads.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> bool | None:
        self._state.ended.set()
        return await self._reads.__aexit__(exc_type, exc_val, exc_tb)

    def _checked(self, received: SessionMessage | Exception) -> SessionMessage | Exception:
        if isinstance(received, SessionMessage) and self._state.version:
            return with_usable_tools(received, self._state.version)
        return received


class _HttpClient(httpx2.AsyncClient):
    """A client that isolates the failure of a request.

    The SDK's transport lets one failed request end the whole connection, and all other calls with
    it. Here the failure becomes the response to that request, and says whether it was ever sent.
    """

    def __init__(self, state: TransportState, **options: Any) -> None:
        super().__init__(**options)
        self._observed = state

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        try:
            response = await super().send(request, **options)
            if response.headers.get("content-type", "").lower().startswith("application/json"):
                response = await _read(response, request)
        except _TooLarge as error:
            return self._failed(request, str(error), None, None)
        except _NEVER_SENT as error:
            return self._failed(
                request, f"cannot connect to {_shown(request.url)}", error, NOT_SENT
            )
        except httpx2.TransportError as error:
            return self._failed(request, "the connection broke", error, None)
        if response.status_code == HTTPStatus.NOT_FOUND and _SESSION_HEADER in request.headers:
            await response.aclose()
            return self._failed(request, "the server no longer knows our session", None, NOT_SENT)
        if response.is_error:
            self._observed.note_output(f"HTTP {response.status_code} {response.reason_phrase}")
        fault = _fault(response)
        if fault is not None and _is_tool_call(request):
            await response.aclose()
            return self._failed(request, fault, None, NO_RESULT)
        return response

    def _failed(
        self, request: httpx2.Request, what: str, why: Exception | None, data: str | None
    ) -> httpx2.Response:
        message = f"{what}: {str(why) or type(why).__name__}" if why else what
        self._observed.note_output(message)
        error = {"code": CONNECTION_CLOSED, "message": message, "data": data}
        body = {"jsonrpc": "2.0", "id": None, "error": error}
        return httpx2.Response(HTTPStatus.SERVICE_UNAVAILABLE, json=body, request=request)


def _fault(response: httpx2.Response) -> str | None:
    """Return why a response carries no result of a tool call that the server received."""
    if response.is_server_error:
        return f"the server answered HTTP {response.status_code} {response.reason_phrase}"
    kind = response.headers.get("content-type", "").lower()
    if response.is_success and not kind.startswith(_RESULT_TYPES):
        return f"the server answered HTTP {response.status_code} without a result"
    return None


def _is_tool_call(request: httpx2.Request) -> bool:
    try:
        message = json.loads(request.content)
    except (ValueError, httpx2.StreamError):
        return False
    return isinstance(message, dict) and cast(JsonObject, message).get("method") == "tools/call"


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
