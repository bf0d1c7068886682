"""Spans that cost next to nothing unless this process exports them."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from uuid import UUID

from opentelemetry import propagate, trace
from opentelemetry.context import Context
from opentelemetry.trace import INVALID_SPAN, Span, SpanKind, Tracer

from pml_common.telemetry import vocabulary

TRACEPARENT = "traceparent"

_recording = False


def record_spans() -> None:
    """Open spans from now on; to be called once a tracer provider is set."""
    global _recording
    _recording = True


def in_a_trace() -> bool:
    """Return whether spans are recorded, or a received trace has to be propagated."""
    # Asking OpenTelemetry for its provider reads the environment each time there is none.
    return _recording or trace.get_current_span().get_span_context().is_valid


def note_workflow(workflow_id: UUID) -> None:
    """Name a workflow on the current span."""
    trace.get_current_span().set_attribute(vocabulary.WORKFLOW_ID, str(workflow_id))


@contextmanager
def spanning(
    tracer: Tracer,
    name: str,
    attributes: Mapping[str, str],
    *,
    kind: SpanKind = SpanKind.INTERNAL,
    sent: Mapping[str, str] | None = None,
) -> Generator[Span]:
    """Open a span around the block; `sent` are headers with the sender's trace context."""
    if not in_a_trace() and (sent is None or TRACEPARENT not in sent):
        yield INVALID_SPAN
        return
    parent: Context | None = None if sent is None else propagate.extract(sent)
    with tracer.start_as_current_span(
        name, context=parent, kind=kind, attributes=attributes
    ) as entered:
        yield entered
