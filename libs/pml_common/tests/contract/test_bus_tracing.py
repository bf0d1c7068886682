"""Propagation of traces, correlation and causation: one workflow is one trace."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import cast
from uuid import uuid4, uuid5

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from libs.pml_common.tests.support.fakes import RecordingHandler
from libs.pml_common.tests.support.harness import BusHarness
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus import tracing
from pml_common.contracts import catalog
from pml_common.contracts.base import Message
from pml_common.contracts.gateway import ToolsListed
from pml_common.contracts.registry import CatalogChanged, ListTools, ToolCatalog
from pml_common.contracts.scope import Scope
from pml_common.telemetry.spans import record_spans

SCOPE = Scope(org="acme", project="webapp")


@pytest.fixture(scope="session")
def exporter() -> InMemorySpanExporter:
    """An exporter of the process's only tracer provider, created once."""
    if not isinstance(trace.get_tracer_provider(), TracerProvider):
        trace.set_tracer_provider(TracerProvider())
        record_spans()
    exporter = InMemorySpanExporter()
    provider = cast("TracerProvider", trace.get_tracer_provider())
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return exporter


@pytest.fixture
def spans(exporter: InMemorySpanExporter) -> Iterator[InMemorySpanExporter]:
    """The spans that end during one test."""
    exporter.clear()
    yield exporter
    exporter.clear()


def named(spans: InMemorySpanExporter, name: str) -> ReadableSpan:
    [span] = [span for span in spans.get_finished_spans() if span.name == name]
    return span


def is_child(child: ReadableSpan, parent: ReadableSpan) -> bool:
    return (
        child.parent is not None
        and parent.context is not None
        and child.parent.span_id == parent.context.span_id
        and child.parent.trace_id == parent.context.trace_id
    )


async def test_handling_and_its_messages_continue_the_senders_trace(
    harness: BusHarness, spans: InMemorySpanExporter
) -> None:
    bus = await harness.connect("registry")
    cause = ToolsListed(event_id=uuid4(), scope=SCOPE, server="fs", tools=())
    fact = CatalogChanged(event_id=uuid5(cause.event_id, "x"), scope=SCOPE, server="fs")
    reader = RecordingHandler()
    await bus.consume(catalog.REGISTRY_ON_TOOLS_LISTED, RecordingHandler([fact]))
    await bus.consume(catalog.Consumer("gateway", catalog.CATALOG_CHANGED), reader)
    with trace.get_tracer("test").start_as_current_span("request"):
        await bus.publish(cause)
    await reader.has_seen(1)
    await bus.drain()
    request, published = named(spans, "request"), named(spans, "publish tools-listed")
    handled, fact_published = (
        named(spans, "handle tools-listed"),
        named(spans, "publish catalog-changed"),
    )
    assert is_child(published, request)
    assert is_child(handled, published)
    assert is_child(fact_published, handled)
    assert is_child(named(spans, "handle catalog-changed"), fact_published)
    assert published.kind is SpanKind.PRODUCER
    assert handled.kind is SpanKind.CONSUMER
    attributes = dict(handled.attributes or {})
    assert attributes["messaging.system"] == "nats"
    assert attributes["messaging.destination.name"] == "pml.evt.gateway.tools-listed.v1"
    assert attributes["messaging.consumer.group.name"] == "registry-on-tools-listed"
    assert attributes["messaging.message.id"] == str(cause.event_id)


async def test_serving_a_query_continues_the_clients_trace(
    querying: BusHarness, spans: InMemorySpanExporter
) -> None:
    bus, query_client = await querying.connect("registry"), await querying.connect("gateway")

    async def answer(question: ListTools) -> ToolCatalog:
        return ToolCatalog(tools=())

    await bus.serve(catalog.LIST_TOOLS, answer)
    await query_client.request(catalog.LIST_TOOLS, ListTools(scope=SCOPE))
    await bus.drain()
    asked, served = named(spans, "ask list-tools"), named(spans, "serve list-tools")
    assert is_child(served, asked)
    assert asked.kind is SpanKind.CLIENT
    assert served.kind is SpanKind.SERVER


async def test_a_failed_handling_shows_on_its_span(
    harness: BusHarness, spans: InMemorySpanExporter
) -> None:
    bus = await harness.connect("registry")
    recorder = RecordingHandler(RuntimeError("broken"))
    await bus.consume(catalog.REGISTRY_ON_TOOLS_LISTED, recorder)
    await bus.publish(ToolsListed(event_id=uuid4(), scope=SCOPE, server="fs", tools=()))
    await recorder.has_seen(2)
    await bus.drain()
    outcomes = [s for s in spans.get_finished_spans() if s.name == "handle tools-listed"]
    assert [s.status.is_ok for s in outcomes] == [False, True]
    assert outcomes[0].events[0].name == "exception"


async def test_a_message_carries_its_causation_and_correlation(harness: BusHarness) -> None:
    bus = await harness.connect("registry")
    causes: list[tracing.Cause | None] = []
    cause = ToolsListed(event_id=uuid4(), scope=SCOPE, server="a.b", tools=())
    fact = CatalogChanged(event_id=uuid4(), scope=SCOPE, server="other")
    heard = asyncio.Event()

    async def handle(message: ToolsListed) -> Sequence[Message]:
        causes.append(tracing.current_cause())
        await bus.request(catalog.LIST_TOOLS, ListTools(scope=SCOPE))
        return [fact]

    async def answer(question: ListTools) -> ToolCatalog:
        causes.append(tracing.current_cause())
        return ToolCatalog(tools=())

    async def hear(message: CatalogChanged) -> None:
        causes.append(tracing.current_cause())
        heard.set()

    await bus.serve(catalog.LIST_TOOLS, answer)
    await bus.listen(catalog.CATALOG_CHANGED, hear)
    await bus.consume(catalog.REGISTRY_ON_TOOLS_LISTED, handle)
    await bus.publish(cause)
    async with asyncio.timeout(PATIENCE_S):
        await heard.wait()
    assert causes == [
        tracing.Cause("a%2Eb", str(cause.event_id)),
        tracing.Cause("a%2Eb", str(cause.event_id)),
        tracing.Cause("a%2Eb", str(fact.event_id)),
    ]
