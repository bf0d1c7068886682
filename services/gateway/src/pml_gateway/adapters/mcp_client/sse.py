"""HTTP with SSE, the transport of before 2025-03-26: a stream of all that the server sends, and a
POST for each message to it."""

import math
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, Final

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.sse import sse_client
from mcp.shared.message import SessionMessage
from mcp_types import CONNECTION_CLOSED, ErrorData, JSONRPCError
from typing_extensions import override

from pml_gateway.adapters.mcp_client.http_client import (
    NO_RESULT,
    NOT_SENT,
    IsolatingHttpClient,
    message_of,
)
from pml_gateway.adapters.mcp_client.streams import ReadStream, WriteStream
from pml_gateway.adapters.mcp_client.transport_state import TransportState
from pml_gateway.domain.servers.server_config import HttpServer

_Inbound = SessionMessage | Exception
_ENDED: Final = (anyio.ClosedResourceError, anyio.BrokenResourceError)


@asynccontextmanager
async def sse_streams(
    server: HttpServer, state: TransportState, auth: httpx2.Auth | None
) -> AsyncGenerator[tuple[MemoryObjectReceiveStream[_Inbound], WriteStream[SessionMessage]]]:
    """Open the stream of a server. A message that it does not take is answered with an error, which
    the SDK's client leaves unanswered."""
    inbound, received = anyio.create_memory_object_stream[_Inbound](math.inf)

    def client(*_: Any, **__: Any) -> httpx2.AsyncClient:
        return _PostingClient(state, server, auth, inbound)

    async with (
        inbound,
        received,
        sse_client(server.url, httpx_client_factory=client) as (reads, writes),
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(_copy, reads, inbound)
        yield received, writes
        tasks.cancel_scope.cancel()


async def _copy(reads: ReadStream[_Inbound], inbound: MemoryObjectSendStream[_Inbound]) -> None:
    try:
        async for message in reads:
            await inbound.send(message)
    except _ENDED:
        pass
    finally:
        inbound.close()


class _PostingClient(IsolatingHttpClient):
    """Answers requests that the server does not take."""

    answered_in_body = False

    def __init__(
        self,
        state: TransportState,
        server: HttpServer,
        auth: httpx2.Auth | None,
        inbound: MemoryObjectSendStream[_Inbound],
    ) -> None:
        super().__init__(state, server.sent_headers, auth)
        self._inbound = inbound

    @override
    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        response = await super().send(request, **options)
        if request.method != "POST" or not response.is_error:
            return response
        request_id = message_of(request).get("id")
        if not isinstance(request_id, int | str):
            return response
        await response.aread()
        error = JSONRPCError(jsonrpc="2.0", id=request_id, error=_error_in(response))
        try:
            self._inbound.send_nowait(SessionMessage(error))
        except _ENDED:
            return response
        return httpx2.Response(HTTPStatus.ACCEPTED, request=request)


def _error_in(response: httpx2.Response) -> ErrorData:
    """Return the error that a refused message gets."""
    try:
        return JSONRPCError.model_validate_json(response.content).error
    except ValueError:
        status = f"HTTP {response.status_code} {response.reason_phrase}"
        unknown = response.status_code == HTTPStatus.NOT_FOUND
        return ErrorData(
            code=CONNECTION_CLOSED,
            message=f"the server answered {status} to a message",
            data=NOT_SENT if unknown else NO_RESULT,
        )
