"""Measurement of every request, and a span of each on `/api`."""

from time import monotonic

from opentelemetry import trace
from opentelemetry.trace import SpanKind, Status, StatusCode
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pml_common.telemetry import metrics, vocabulary
from pml_common.telemetry.instruments import OTHER, Distribution
from pml_common.telemetry.spans import spanning

_duration = Distribution(metrics.HTTP_DURATION)
_tracer = trace.get_tracer(__name__)
_METHODS = frozenset(metrics.HTTP_DURATION.attributes[1].values)
_OTHER_METHOD = "_OTHER"
_SPANNED = "/api/"
"""MCP has spans of its own: one HTTP exchange may carry a whole session."""


class Measured:
    """ASGI middleware around everything else."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and measure it until the end of its response."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = monotonic(), 0

        async def note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            if scope["path"].startswith(_SPANNED):
                await self._spanned(scope, receive, note)
            else:
                await self._app(scope, receive, note)
        except Exception:
            status = status or 500
            raise
        finally:
            _duration.record(monotonic() - began, _route(scope), _method(scope), str(status))

    async def _spanned(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = _method(scope)
        attributes, sent = {vocabulary.METHOD: method}, Headers(scope=scope)
        with spanning(_tracer, method, attributes, kind=SpanKind.SERVER, sent=sent) as span:

            async def note(message: Message) -> None:
                if message["type"] == "http.response.start":
                    span.set_attribute(vocabulary.STATUS, message["status"])
                    if message["status"] >= 500:
                        span.set_status(Status(StatusCode.ERROR))
                await send(message)

            try:
                await self._app(scope, receive, note)
            finally:
                route = _route(scope)
                span.update_name(f"{method} {route}")
                span.set_attribute(vocabulary.ROUTE, route)


def _route(scope: Scope) -> str:
    """Return the route that was found; never the path, which callers choose."""
    route = scope.get("route")
    if route is None and "endpoint" in scope and not scope.get("path_params"):
        return scope["path"]  # a route of Starlette without parameters: one path
    return getattr(route, "path", OTHER)


def _method(scope: Scope) -> str:
    return scope["method"] if scope["method"] in _METHODS else _OTHER_METHOD
