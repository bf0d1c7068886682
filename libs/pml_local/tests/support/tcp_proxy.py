"""A TCP proxy whose connections a test can cut."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit


class TcpProxy:
    """Forwards a local port to a server."""

    def __init__(self, target: str) -> None:
        self._target = urlsplit(target)
        self._port = 0
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()

    @property
    def port(self) -> int:
        """The port it listens on, once opened."""
        return self._port

    @property
    def dsn(self) -> str:
        """The target's URL with this proxy's address."""
        user, _, _ = self._target.netloc.rpartition("@")
        netloc = f"{user}@127.0.0.1:{self._port}"
        return self._target._replace(netloc=netloc).geturl()

    async def listen(self) -> None:
        """Listen, on the same port each time."""
        self._server = await asyncio.start_server(self._forward, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        """Drop every connection and refuse new ones."""
        if self._server is not None:
            self._server.close()
        for writer in list(self._open):
            writer.transport.abort()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepting = self._server
        try:
            there, back = await asyncio.open_connection(self._target.hostname, self._target.port)
        except OSError:
            writer.transport.abort()
            return
        if accepting is None or not accepting.is_serving():  # cut meanwhile
            writer.transport.abort()
            back.transport.abort()
            return
        with suppress(OSError):
            await asyncio.gather(self._pump(reader, back), self._pump(there, writer))

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        self._open.add(sink)
        try:
            while data := await source.read(65536):
                sink.write(data)
                await sink.drain()
        finally:
            self._open.discard(sink)
            sink.close()


@asynccontextmanager
async def tcp_proxy(target: str) -> AsyncGenerator[TcpProxy]:
    """Run a proxy to `target`, a URL, until the context exits."""
    proxy = TcpProxy(target)
    await proxy.listen()
    try:
        yield proxy
    finally:
        await proxy.cut()
