"""Spans that cost nothing where nobody looks at them."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager

from opentelemetry import propagate, trace
from opentelemetry.context import Context
from opentelemetry.trace import INVALID_SPAN, Span, SpanKind, Tracer

TRACEPARENT = "traceparent"


def in_a_trace() -> bool:
    """Whether spans are exported, or we are within a trace that is to be handed on."""
    # Asked for by its name, it is looked up in the environment every time it is not there.
    provider = trace._TRACER_PROVIDER  # pyright: ignore[reportPrivateUsage]
    return provider is not None or trace.get_current_span().get_span_context().is_valid


@contextmanager
def spanning(
    tracer: Tracer,
    name: str,
    attributes: Mapping[str, str],
    *,
    kind: SpanKind = SpanKind.INTERNAL,
    sent: Mapping[str, str] | None = None,
) -> Generator[Span]:
    """A span around the block; `sent` are the headers that tell the sender's."""
    if not in_a_trace() and (sent is None or TRACEPARENT not in sent):
        yield INVALID_SPAN
        return
    parent: Context | None = None if sent is None else propagate.extract(sent)
    with tracer.start_as_current_span(
        name, context=parent, kind=kind, attributes=attributes
    ) as entered:
        yield entered
