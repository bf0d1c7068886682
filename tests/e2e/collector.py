"""A minimal OpenTelemetry collector: receives spans and counters over OTLP/HTTP and stores them."""

import gzip
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pml_common.http_server import serve_http
from pml_local.ports import free_port


@dataclass(frozen=True)
class Span:
    """A received span; ids in hex."""

    service: str
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    attributes: dict[str, str]


@dataclass
class Collector:
    """The endpoint, and the received spans and counters; counters by name and attribute value."""

    endpoint: str
    spans: list[Span] = field(default_factory=list[Span])
    counts: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])

    def of_workflow(self, workflow_id: str) -> list[Span]:
        """All spans of every trace with a span that names the workflow."""
        traces = {s.trace_id for s in self.spans if workflow_id in s.attributes.values()}
        return [span for span in self.spans if span.trace_id in traces]


@asynccontextmanager
async def collector() -> AsyncGenerator[Collector]:
    """Run a collector on a free loopback port."""
    port = free_port()
    collected = Collector(f"http://127.0.0.1:{port}")

    async def spans(request: Request) -> Response:
        collected.spans.extend(_read(ExportTraceServiceRequest.FromString(await _body(request))))
        return Response(media_type="application/x-protobuf")

    async def counters(request: Request) -> Response:
        collected.counts |= _counted(ExportMetricsServiceRequest.FromString(await _body(request)))
        return Response(media_type="application/x-protobuf")

    routes = {"/v1/traces": spans, "/v1/metrics": counters}
    app = Starlette(routes=[Route(at, take, methods=["POST"]) for at, take in routes.items()])
    async with serve_http(app, "127.0.0.1", port):
        yield collected


async def _body(request: Request) -> bytes:
    body = await request.body()
    return gzip.decompress(body) if request.headers.get("content-encoding") == "gzip" else body


def _counted(request: ExportMetricsServiceRequest) -> dict[tuple[str, str], int]:
    return {
        (metric.name, point.attributes[0].value.string_value): point.as_int
        for group in request.resource_metrics
        for scoped in group.scope_metrics
        for metric in scoped.metrics
        for point in metric.sum.data_points
        if point.attributes
    }


def _read(request: ExportTraceServiceRequest) -> list[Span]:
    return [
        Span(
            service=next(
                a.value.string_value for a in group.resource.attributes if a.key == "service.name"
            ),
            name=span.name,
            trace_id=span.trace_id.hex(),
            span_id=span.span_id.hex(),
            parent_id=span.parent_span_id.hex(),
            attributes={a.key: a.value.string_value for a in span.attributes},
        )
        for group in request.resource_spans
        for scoped in group.scope_spans
        for span in scoped.spans
    ]
