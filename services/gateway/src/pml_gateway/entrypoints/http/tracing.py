"""Spans around requests that begin or resume a workflow."""

from collections.abc import Generator
from contextlib import contextmanager

from fastapi import Request
from opentelemetry import propagate, trace
from opentelemetry.trace import Span, SpanKind

_tracer = trace.get_tracer(__name__)


@contextmanager
def serving(request: Request, route: str) -> Generator[Span]:
    """A server span for a request to `route`, child of the caller's own span if it sent one."""
    with _tracer.start_as_current_span(
        f"{request.method} {route}",
        context=propagate.extract(request.headers),
        kind=SpanKind.SERVER,
        attributes={"http.request.method": request.method, "http.route": route},
    ) as span:
        yield span
