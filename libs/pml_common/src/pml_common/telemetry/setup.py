"""Set-up of tracing, metrics and logging, once per process.

Spans and metrics are exported over OTLP to `OTEL_EXPORTER_OTLP_ENDPOINT` (the SDK reads the
standard `OTEL_*` variables); without it they are not recorded and cost next to nothing.
"""

import logging
import sys

from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from pml_common.telemetry.spans import record_spans


class _TraceContext(logging.Filter):
    """Adds the trace id of the current span to every log record."""

    def filter(self, record: logging.LogRecord) -> bool:
        context = trace.get_current_span().get_span_context()
        record.trace_id = f"{context.trace_id:032x}" if context.is_valid else "-"
        return True


def set_up_logging(service: str, level: str) -> None:
    """Log one line per record to stderr: time, level, service, logger, trace id, message."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(_TraceContext())
    handler.setFormatter(
        logging.Formatter(
            f"%(asctime)s %(levelname)s {service} %(name)s trace=%(trace_id)s %(message)s"
        )
    )
    logging.basicConfig(level=level, handlers=[handler], force=True)


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


def set_up_metrics(service: str, endpoint: str | None) -> MeterProvider | None:
    """Export this process's metrics to `endpoint`; None disables them."""
    if endpoint is None:
        return None
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

    reader = PeriodicExportingMetricReader(OTLPMetricExporter())
    provider = MeterProvider([reader], resource=_resource(service))
    metrics.set_meter_provider(provider)
    return provider


def _resource(service: str) -> Resource:
    return Resource.create({"service.name": f"pml-{service}"})
