"""Trace context, correlation and causation across messages and queries."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from opentelemetry import propagate, trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from pml_common.bus import names
from pml_common.bus.codec import CAUSATION, CORRELATION, MSG_ID
from pml_common.contracts import catalog
from pml_common.contracts.base import Contract, Message, Query
from pml_common.contracts.catalog import QueryType
from pml_common.contracts.fault_words import text_of
from pml_common.telemetry import vocabulary
from pml_common.telemetry.spans import in_a_trace, spanning

_tracer = trace.get_tracer("pml_common.bus")


@dataclass(frozen=True)
class Cause:
    """The id of the message being handled, and the id that its whole chain started with."""

    correlation: str
    causation: str


_cause: ContextVar[Cause | None] = ContextVar("pml_cause", default=None)


def current_cause() -> Cause | None:
    """Return the cause of what this task sends, if any."""
    return _cause.get()


def _outgoing_headers(correlation: str | None = None) -> dict[str, str]:
    """Build the headers for trace context and cause; `correlation` applies without a cause."""
    headers: dict[str, str] = {}
    cause = _cause.get()
    if cause is not None:
        headers[CORRELATION] = cause.correlation
        headers[CAUSATION] = cause.causation
    elif correlation is not None:
        headers[CORRELATION] = correlation
    if in_a_trace():
        propagate.inject(headers)
    return headers


@contextmanager
def publishing(message: Message) -> Generator[dict[str, str]]:
    """Open a span around a publish; yields the headers that propagate it."""
    entry = catalog.type_of(message)
    destination = names.prefix_of(entry)
    with _span("publish", entry.name, destination, SpanKind.PRODUCER, "send") as span:
        headers = _outgoing_headers(correlation=names.entity_token(message.entity))
        span.set_attribute(vocabulary.MESSAGE_ID, str(message.message_id))
        span.set_attribute(vocabulary.CONVERSATION_ID, headers[CORRELATION])
        yield headers


@contextmanager
def requesting(query_type: QueryType[Query, Contract]) -> Generator[dict[str, str]]:
    """Open a span around a request; yields the headers that propagate it."""
    destination = names.query_subject(query_type)
    with _span("ask", query_type.name, destination, SpanKind.CLIENT, "send"):
        yield _outgoing_headers()


@contextmanager
def receiving(
    operation: str, name: str, destination: str, headers: Mapping[str, str]
) -> Generator[Span]:
    """Open a span around handling, a child of the sender's; what is sent inside is caused by the
    message, or by the cause of the query."""
    asked = operation == "serve"
    cause = Cause(headers.get(CORRELATION, ""), headers.get(CAUSATION if asked else MSG_ID, ""))
    token = _cause.set(cause if cause.correlation else None)
    kind = SpanKind.SERVER if asked else SpanKind.CONSUMER
    try:
        with _span(operation, name, destination, kind, "process", headers) as span:
            if not asked:
                span.set_attribute(vocabulary.MESSAGE_ID, cause.causation)
            span.set_attribute(vocabulary.CONVERSATION_ID, cause.correlation)
            yield span
    finally:
        _cause.reset(token)


@contextmanager
def receiving_batch(
    name: str, destination: str, received: Sequence[Mapping[str, str]]
) -> Generator[Span]:
    """Open a span around handling several messages, given their headers: of no sender's trace, but
    linked to each of them; what is sent inside has no cause."""
    token = _cause.set(None)
    try:
        with _span("handle", name, destination, SpanKind.CONSUMER, "process") as span:
            span.set_attribute(vocabulary.BATCH_SIZE, len(received))
            if span.is_recording():
                for headers in received:
                    sender = trace.get_current_span(propagate.extract(headers))
                    span.add_link(sender.get_span_context())
            yield span
    finally:
        _cause.reset(token)


def _span(
    operation: str,
    name: str,
    destination: str,
    kind: SpanKind,
    operation_type: str,
    headers: Mapping[str, str] | None = None,
) -> AbstractContextManager[Span]:
    attributes = {
        vocabulary.MESSAGING_SYSTEM: "nats",
        vocabulary.OPERATION_NAME: operation,
        vocabulary.OPERATION_TYPE: operation_type,
        vocabulary.DESTINATION: destination,
    }
    return spanning(_tracer, f"{operation} {name}", attributes, kind=kind, sent=headers)


def mark_failed(span: Span, error: BaseException) -> None:
    """Mark a span as failed by an error that is handled inside it."""
    span.record_exception(error)
    span.set_status(Status(StatusCode.ERROR, text_of(error)))
