"""Health over HTTP, for the supervisor of a process."""

import asyncio
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pml_common.http_server import serve_http
from pml_common.telemetry.setup import Scrape

Check = Callable[[], Awaitable[str | None]]
"""Returns a problem or None; a `Detail` is information about a healthy dependency."""

Checks = Mapping[str, Check]


class Detail(str):
    """Information about a healthy dependency."""

    __slots__ = ()


def fixed_detail(text: str) -> Check:
    """Return a check that always succeeds with this detail."""

    async def check() -> str | None:
        return Detail(text)

    return check


def detail(text: str | None) -> Detail | None:
    """Wrap a text, if any, as a Detail."""
    return None if text is None else Detail(text)


async def report(checks: Checks, *, timeout: float = 2.0) -> tuple[int, dict[str, object]]:
    """Return HTTP status and body: 200 `ok` if every check succeeds, else 503 `degraded`; by the
    pid a supervisor recognises its own child."""
    names = list(checks)
    found = await asyncio.gather(*(_run_check(checks[name], timeout) for name in names))
    problems = [one for one in found if one is not None and not isinstance(one, Detail)]
    body: dict[str, object] = {"status": "degraded" if problems else "ok", "pid": os.getpid()}
    body["checks"] = {name: one or "ok" for name, one in zip(names, found, strict=True)}
    return (503 if problems else 200), body


async def _run_check(check: Check, timeout: float) -> str | None:
    try:
        async with asyncio.timeout(timeout):
            return await check()
    except TimeoutError:
        return f"no answer within {timeout:g} s"


@dataclass
class Readiness:
    """Whether a process accepts requests; a stopping one still answers those that arrive."""

    stopping: bool = False

    def answer(self) -> JSONResponse:
        """Build the response to `GET /readyz`: 200, or 503 once the process is stopping."""
        status = "stopping" if self.stopping else "ready"
        return JSONResponse({"status": status}, status_code=503 if self.stopping else 200)


@asynccontextmanager
async def serve_health(
    port: int,
    checks: Checks,
    readiness: Readiness | None = None,
    *,
    host: str = "127.0.0.1",
    scrape: Scrape | None = None,
) -> AsyncGenerator[None]:
    """Serve `GET /healthz` (dependencies too), `/readyz` and `/livez` (this process) and, with
    `scrape`, `/metrics`."""
    ready = readiness or Readiness()

    async def healthz(_: Request) -> JSONResponse:
        status, body = await report(checks)
        return JSONResponse(body, status_code=status)

    async def readyz(_: Request) -> JSONResponse:
        return ready.answer()

    async def livez(_: Request) -> JSONResponse:
        return JSONResponse({"status": "ok"})

    routes = {"/healthz": healthz, "/readyz": readyz, "/livez": livez}
    app = Starlette(routes=[Route(path, endpoint) for path, endpoint in routes.items()])
    if scrape is not None:
        app.router.routes.append(_metrics_route(scrape))
    async with serve_http(app, host, port):
        yield


def _metrics_route(scrape: Scrape) -> Route:
    async def metrics(_: Request) -> Response:
        scraped = await asyncio.to_thread(scrape)  # off the loop: milliseconds
        return Response(scraped.text, media_type=scraped.media_type)

    return Route("/metrics", metrics)
