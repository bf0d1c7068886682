"""Set-up of tracing, metrics and logging, once per process.

Spans and metrics are exported over OTLP to `OTEL_EXPORTER_OTLP_ENDPOINT` (the SDK reads the
standard `OTEL_*` variables), metrics also to whoever scrapes the health server; without either they
are not recorded and cost next to nothing.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from pml_common.telemetry.instruments import measuring
from pml_common.telemetry.spans import record_spans

_SERVICE = "service.name"


@dataclass(frozen=True)
class Scraped:
    """The metrics of a process in Prometheus's text format, with its media type."""

    text: bytes
    media_type: str


Scrape = Callable[[], Scraped]
"""Collects the metrics of this process."""


def set_up_tracing(service: str, endpoint: str | None) -> TracerProvider | None:
    """Export this process's spans to `endpoint`; None disables tracing."""
    if endpoint is None:
        return None
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    provider = TracerProvider(resource=_resource(service))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    record_spans()
    return provider


@contextmanager
def metering(service: str, endpoint: str | None, *, scraped: bool) -> Generator[Scrape | None]:
    """Record measurements until the context exits: export them to `endpoint`, if any, and yield
    what a scrape gets, if they are `scraped`. Without either nothing is recorded."""
    if endpoint is None and not scraped:
        yield None
        return
    readers, scrape = list[MetricReader](), None
    if endpoint is not None:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

        from pml_common.telemetry.readers import DistributionExporter

        readers.append(PeriodicExportingMetricReader(DistributionExporter(OTLPMetricExporter())))
    if scraped:
        reader, scrape = _prometheus()
        readers.append(reader)
    provider = MeterProvider(
        readers,
        resource=_resource(service),
        shutdown_on_exit=False,
    )
    with measuring(provider):
        try:
            yield scrape
        finally:
            provider.shutdown()  # exports once more, while there is something to read


def _prometheus() -> tuple[MetricReader, Scrape]:
    """Build a reader with a registry of its own; imported where it is used, for its memory."""
    from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

    from pml_common.telemetry.readers import ScrapedReader

    registry = CollectorRegistry()
    reader = ScrapedReader(
        disable_target_info=True,
        scope_info_enabled=False,
        resource_attribute_filter=lambda name: name == _SERVICE,
        registry=registry,
    )
    return reader, lambda: Scraped(generate_latest(registry), CONTENT_TYPE_LATEST)


def _resource(service: str) -> Resource:
    return Resource.create({_SERVICE: f"pml-{service}"})
