"""An ASGI app served in this process's loop, on a port of its own or one handed on, and drained."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Final, Literal

import uvicorn
from starlette.types import ASGIApp

BACKLOG: Final = 4096
"""Connections that wait to be accepted; the kernel's `net.core.somaxconn` may allow fewer."""

LINGER_S: Final = 0.5
"""For the next request on a connection that is idle when a drain begins: its client may have sent
it already. The answer says `Connection: close`."""

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
        """Whether requests were waited for before."""
        return self._idle_until is not None

    async def drain(self, within: float) -> bool:
        """Accept no more connections, let requests under way end and close what is idle; whether
        all ended within so many seconds. May be called again to wait on."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + within
        if self._idle_until is None:
            self._idle_until = clock() + LINGER_S
            self._server.retire()
            await asyncio.sleep(_POLL_S)  # what was accepted just before becomes known
        while self._server.open and clock() < deadline:
            if clock() >= self._idle_until:
                self._server.close_idle()
            await asyncio.sleep(_POLL_S)
        return not self._server.open


def inherited(fd: int) -> socket.socket:
    """The listening socket that this process was started with; no child of ours gets it. Raises
    OSError when there is none."""
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
    """A socket bound to an address. Raises OSError when that is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP, asyncio turns Nagle's delay off; else each small answer waits 40 ms.
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
    """Serve an ASGI app inside this process's loop; signals stay with the caller. `reader` reads
    requests: one that bounds their heads. With `handed_on`, connections come from that socket,
    which stays open elsewhere: those not accepted here wait for the next process.

    Leaving drains; requests that still run after that are cancelled. Raises OSError when the
    address is taken.
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
    """A server that says when it listens and leaves signals to the process that runs it."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    @property
    def open(self) -> int:
        """How many connections there are."""
        return len(self.server_state.connections)

    def retire(self) -> None:
        """Accept nothing more, and end each connection with the next answer on it."""
        if not self.started:
            return
        for server in self.servers:
            server.close()
        # The first list is made anew of the second every second.
        self.server_state.default_headers = [*self.server_state.default_headers, _CLOSE]
        self.config.encoded_headers = [*self.config.encoded_headers, _CLOSE]
        for connection in list(self.server_state.connections):
            if not _idle(connection):
                connection.shutdown()

    def close_idle(self) -> None:
        """Close connections on which nothing is being answered."""
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
