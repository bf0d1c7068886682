"""The REST application of a gateway under test, with routes that all gateways of a process share:
FastAPI takes longer to build them than a test takes to call one."""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import fields
from functools import cache, partial
from typing import Any, cast

from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from pml_gateway.app import app_of, local_callers
from pml_gateway.entrypoints.http.app import UseCases, api_routes
from pml_gateway.entrypoints.mcp.endpoint import McpEndpoint
from pml_gateway.parts import Parts

_called: ContextVar[Parts] = ContextVar("called")
"""The gateway whose route is called."""


class _Part:
    """Stands in a shared route for a part of the gateway that is called."""

    def __init__(self, find: Callable[[Parts], object]) -> None:
        self._find = find

    def __getattr__(self, name: str) -> object:
        return getattr(self._find(_called.get()), name)


def shared_app(parts: Parts, endpoint: McpEndpoint) -> ASGIApp:
    """Build the application of a gateway."""
    app = app_of(parts, endpoint, _routes())

    async def called(scope: Scope, receive: Receive, send: Send) -> None:
        _called.set(parts)
        await app(scope, receive, send)

    return called


@cache
def _routes() -> list[BaseRoute]:
    names = [each.name for each in fields(UseCases)]
    found = {name: cast(Any, _Part(partial(_use_case, name))) for name in names}
    bus, callers, streams = (cast(Any, _Part(find)) for find in (_bus, _callers, _streams))
    return api_routes(UseCases(**found), bus, callers, streams)


def _use_case(name: str, parts: Parts) -> object:
    return getattr(parts.use_cases, name)


def _bus(parts: Parts) -> object:
    return parts.bus


def _callers(parts: Parts) -> object:
    return local_callers(parts.settings)


def _streams(parts: Parts) -> object:
    return parts.streams
