"""The transports to MCP servers: the SDK's, extended to report their faults and ends."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import Self

import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from pml_gateway.adapters.mcp_client.capabilities import declared
from pml_gateway.adapters.mcp_client.http_client import MAX_RESULT_BYTES, IsolatingHttpClient
from pml_gateway.adapters.mcp_client.listings import with_usable_items
from pml_gateway.adapters.mcp_client.sse import sse_streams
from pml_gateway.adapters.mcp_client.stderr import stderr_log
from pml_gateway.adapters.mcp_client.stdio import child_streams
from pml_gateway.adapters.mcp_client.streams import ReadStream, WriteStream
from pml_gateway.adapters.mcp_client.transport_state import TransportState
from pml_gateway.domain.servers.server_config import ServerConfig, StdioServer

Streams = tuple[ReadStream[SessionMessage | Exception], WriteStream[SessionMessage]]


@asynccontextmanager
async def open_streams(
    name: str,
    server: ServerConfig,
    environment: Mapping[str, str],
    state: TransportState,
    auth: httpx2.Auth | None = None,
) -> AsyncGenerator[Streams]:
    """Open streams to one server, over HTTP with `auth`; its child process, if any, has ended when
    the context exits."""
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
            yield _ObservedStream(reads, state), _DeclaringStream(writes)
        return
    if server.type == "sse":
        async with sse_streams(server, state, auth) as (reads, writes):
            yield _ObservedStream(reads, state), _DeclaringStream(writes)
        return
    async with (
        IsolatingHttpClient(state, server.sent_headers, auth) as http,
        streamable_http_client(
            server.url, http_client=http, max_sse_event_size=MAX_RESULT_BYTES
        ) as (reads, writes),
    ):
        yield _ObservedStream(reads, state), _DeclaringStream(writes)


class _ObservedStream:
    """A read stream that sets `ended` when its reader leaves it, which the SDK's session does not
    report, and that sets malformed items of a listing aside."""

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
            return with_usable_items(received, self._state.version)
        return received


class _DeclaringStream:
    """A write stream whose requests declare what the client of each can be asked for."""

    def __init__(self, writes: WriteStream[SessionMessage]) -> None:
        self._writes = writes

    async def send(self, item: SessionMessage, /) -> None:
        await self._writes.send(declared(item))

    async def aclose(self) -> None:
        await self._writes.aclose()

    async def __aenter__(self) -> Self:
        await self._writes.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> bool | None:
        return await self._writes.__aexit__(exc_type, exc_val, exc_tb)
