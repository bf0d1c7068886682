"""Health over HTTP, for whatever supervises a process."""

import asyncio
import os
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Literal

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

Check = Callable[[], Awaitable[str | None]]
"""Says what is wrong, or None; a `Detail` is nothing wrong but worth telling."""

Checks = Mapping[str, Check]


class Detail(str):
    """What a healthy dependency has to tell about itself."""

    __slots__ = ()


def told(text: str) -> Check:
    """A check that finds nothing wrong and always tells this."""

    async def check() -> str | None:
        return Detail(text)

    return check


async def report(checks: Checks, *, timeout: float = 2.0) -> tuple[int, dict[str, object]]:
    """HTTP status and body: 200 `ok` when every check is fine, else 503 `degraded`; the pid tells
    a supervisor that it is its own child that answers."""
    names = list(checks)
    found = await asyncio.gather(*(_ask(checks[name], timeout) for name in names))
    problems = [one for one in found if one is not None and not isinstance(one, Detail)]
    body: dict[str, object] = {"status": "degraded" if problems else "ok", "pid": os.getpid()}
    body["checks"] = {name: one or "ok" for name, one in zip(names, found, strict=True)}
    return (503 if problems else 200), body


async def _ask(check: Check, timeout: float) -> str | None:
    try:
        async with asyncio.timeout(timeout):
            return await check()
    except TimeoutError:
        return f"no answer within {timeout:g} s"


@asynccontextmanager
async def serve_health(port: int, checks: Checks) -> AsyncGenerator[None]:
    """Serve `GET /healthz` (dependencies too) and `/livez` (this process) on loopback."""

    async def healthz(_: Request) -> JSONResponse:
        status, body = await report(checks)
        return JSONResponse(body, status_code=status)

    async def livez(_: Request) -> JSONResponse:
        return JSONResponse({"status": "ok"})

    app = Starlette(routes=[Route("/healthz", healthz), Route("/livez", livez)])
    async with serve_http(app, "127.0.0.1", port):
        yield


@asynccontextmanager
async def serve_http(
    app: Starlette, host: str, port: int, reader: Literal["h11"] | type[asyncio.Protocol] = "h11"
) -> AsyncGenerator[None]:
    """Serve an ASGI app inside this process's loop; signals stay with the caller. `reader` reads
    requests: one that bounds their heads.

    Raises OSError when the address is taken.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP, asyncio turns Nagle's delay off; else each small answer waits 40 ms.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            raise OSError(
                error.errno, f"cannot listen on {host}:{port}: {error.strerror}"
            ) from error
        server = _Server(uvicorn.Config(app, http=reader, log_config=None, access_log=False))
        task = asyncio.create_task(server.serve(sockets=[listener]), name=f"http-{port}")
        try:
            async with asyncio.timeout(10.0):
                await server.listening.wait()
            yield
        finally:
            server.should_exit = True
            await task


class _Server(uvicorn.Server):
    """A server that says when it listens and leaves signals to the process that runs it."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield
