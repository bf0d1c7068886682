"""An ASGI server in this process's loop, on its own or an inherited socket, with a drain."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Final, Literal

import uvicorn
from starlette.types import ASGIApp

BACKLOG: Final = 4096
"""Connections waiting to be accepted; the kernel's `net.core.somaxconn` may allow fewer."""

LINGER_S: Final = 0.5
"""Wait for the next request on a connection that is idle when a drain begins: its client may have
sent it already. The response says `Connection: close`."""

_CLOSE: Final = (b"connection", b"close")
_POLL_S: Final = 0.02
_LAST_ANSWERS_S: Final = 1
_START_S: Final = 10.0
_DRAIN_S: Final = 10.0


class HttpServer:
    """A running server."""

    def __init__(self, server: "_Server") -> None:
        self._server = server
        self._idle_until: float | None = None

    @property
    def drained(self) -> bool:
        """Whether a drain has begun."""
        return self._idle_until is not None

    async def drain(self, within: float) -> bool:
        """Stop accepting connections, finish requests in progress and close idle connections;
        return whether all ended within `within` seconds. May be called again to wait longer."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + within
        if self._idle_until is None:
            self._idle_until = clock() + LINGER_S
            self._server.retire()
            await asyncio.sleep(_POLL_S)  # connections accepted just before get registered
        while self._server.open and clock() < deadline:
            if clock() >= self._idle_until:
                self._server.close_idle()
            await asyncio.sleep(_POLL_S)
        return not self._server.open


def inherited(fd: int) -> socket.socket:
    """Return the listening socket that this process was started with; our children do not inherit
    it. Raises OSError if there is none."""
    try:
        listener = socket.socket(fileno=fd)
    except OSError as error:
        raise OSError(error.errno, f"file descriptor {fd} is no socket to listen on") from error
    if not listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        listener.close()
        raise OSError(f"the socket with file descriptor {fd} does not listen")
    listener.set_inheritable(False)
    return listener


def listener_on(host: str, port: int) -> socket.socket:
    """Return a socket bound to an address. Raises OSError if the address is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With TCP given, asyncio disables Nagle's algorithm; else each small response waits 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise OSError(error.errno, f"cannot listen on {host}:{port}: {error.strerror}") from error
    return listener


@asynccontextmanager
async def serve_http(
    app: ASGIApp,
    host: str,
    port: int,
    reader: Literal["h11"] | type[asyncio.Protocol] = "h11",
    *,
    handed_on: socket.socket | None = None,
) -> AsyncGenerator[HttpServer]:
    """Serve an ASGI app in this process's loop; signals stay with the caller. `reader` parses
    requests and bounds their heads. With `handed_on`, connections come from that socket, which
    stays open in its parent: those not accepted here wait for the next process.

    Leaving the block drains; requests that still run after that are cancelled. Raises OSError if
    the address is taken.
    """
    with handed_on or listener_on(host, port) as listener:
        config = uvicorn.Config(
            app,
            http=reader,
            log_config=None,
            access_log=False,
            backlog=BACKLOG,
            timeout_graceful_shutdown=_LAST_ANSWERS_S,
        )
        server = _Server(config)
        task = asyncio.create_task(server.serve(sockets=[listener]), name=f"http-{port}")
        running = HttpServer(server)
        try:
            async with asyncio.timeout(_START_S):
                await server.listening.wait()
            yield running
        finally:
            await running.drain(0.0 if running.drained else _DRAIN_S)
            server.should_exit = True
            await task


class _Server(uvicorn.Server):
    """A server with an event for its start, which leaves signals to its process."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    @property
    def open(self) -> int:
        """The number of open connections."""
        return len(self.server_state.connections)

    def retire(self) -> None:
        """Stop accepting, and close each connection after the next response on it."""
        if not self.started:
            return
        for server in self.servers:
            server.close()
        # uvicorn rebuilds the first list from the second every second.
        self.server_state.default_headers = [*self.server_state.default_headers, _CLOSE]
        self.config.encoded_headers = [*self.config.encoded_headers, _CLOSE]
        for connection in list(self.server_state.connections):
            if not _idle(connection):
                connection.shutdown()

    def close_idle(self) -> None:
        """Close connections without a request in progress."""
        for connection in list(self.server_state.connections):
            if _idle(connection):
                connection.shutdown()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


def _idle(connection: object) -> bool:
    cycle = getattr(connection, "cycle", None)
    return cycle is None or cycle.response_complete
