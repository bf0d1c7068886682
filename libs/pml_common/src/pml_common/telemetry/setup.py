"""Set-up of tracing, metrics and logging, once per process.

Spans and metrics are exported over OTLP to `OTEL_EXPORTER_OTLP_ENDPOINT` (the SDK reads the
standard `OTEL_*` variables), metrics also to whoever scrapes the health server; without either they
are not recorded and cost next to nothing.
"""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from pml_common.telemetry.instruments import measuring
from pml_common.telemetry.spans import record_spans

if TYPE_CHECKING:
    from pml_common.telemetry.prometheus import PrometheusText

_SERVICE = "service.name"


@dataclass(frozen=True)
class Scraped:
    """The metrics of a process in Prometheus's text format, with its media type."""

    text: bytes
    media_type: str


class Scrape:
    """Collects the metrics of this process, from any thread, one scrape at a time."""

    def __init__(self, provider: MeterProvider) -> None:
        self._provider = provider
        self._lock = Lock()
        self._text: PrometheusText | None = None

    def __call__(self) -> Scraped:
        """Return the present values. What was measured before the first scrape is in them."""
        from pml_common.telemetry.prometheus import MEDIA_TYPE, PrometheusText

        with self._lock:
            if self._text is None:
                self._text = PrometheusText(self._provider)
            return Scraped(self._text.collect(), MEDIA_TYPE)


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
    readers = list[MetricReader]()
    if endpoint is not None:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

        from pml_common.telemetry.readers import DistributionExporter

        readers.append(PeriodicExportingMetricReader(DistributionExporter(OTLPMetricExporter())))
    provider = MeterProvider(readers, resource=_resource(service), shutdown_on_exit=False)
    with measuring(provider):
        try:
            yield Scrape(provider) if scraped else None
        finally:
            provider.shutdown()  # exports once more, while there is something to read


def _resource(service: str) -> Resource:
    return Resource.create({_SERVICE: f"pml-{service}"})
