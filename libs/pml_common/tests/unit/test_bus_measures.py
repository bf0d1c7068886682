"""Measurements of deliveries and queries on the bus."""

from collections.abc import Generator, Sequence
from dataclasses import replace
from uuid import uuid4

import pytest

from libs.pml_common.tests.support.fakes import RecordingHandler
from libs.pml_common.tests.support.measured import Measured, measured
from libs.pml_local.tests.support.harness import eventually
from pml_common.bus.errors import QueryFailed, Rejected
from pml_common.bus.port import Handled
from pml_common.contracts import catalog
from pml_common.contracts.gateway import ToolsListed
from pml_common.contracts.registry import ListTools, ToolCatalog
from pml_common.contracts.scope import Scope
from pml_common.telemetry import metrics
from pml_common.testing.memory_bus import MemoryBus

SCOPE = Scope(org="acme", project="webapp")
CONSUMER = replace(catalog.REGISTRY_ON_TOOLS_LISTED, retry_delays_s=(0.0,))
BY = {"messaging_consumer_group_name": CONSUMER.durable}
MESSAGES = metrics.BUS_MESSAGES.samples[0]


@pytest.fixture
def m() -> Generator[Measured]:
    with measured() as one:
        yield one


def tools_listed() -> ToolsListed:
    return ToolsListed(event_id=uuid4(), scope=SCOPE, server="fs", tools=())


async def test_a_message_is_counted_by_its_outcome(m: Measured) -> None:
    bus, recorder = MemoryBus(), RecordingHandler(ValueError("first"), Rejected("second"))
    await bus.consume(CONSUMER, recorder)
    await bus.publish(tools_listed())
    await eventually(lambda: m.value(MESSAGES, pml_outcome="dead_letter", **BY) == 1)
    assert m.value(MESSAGES, pml_outcome="retried", **BY) == 1
    assert m.value(metrics.BUS_REDELIVERIES.samples[0], **BY) == 1
    await bus.publish(tools_listed())
    await eventually(lambda: m.value(MESSAGES, pml_outcome="done", **BY) == 1)
    assert m.value(f"{metrics.BUS_HANDLING.prometheus_name}_count", **BY) == 3


async def test_a_batch_is_one_call_of_its_size(m: Measured) -> None:
    bus, batched = MemoryBus(), catalog.LEARNER_ON_CALL_ENDED
    batched = replace(CONSUMER, batch=batched.batch)

    async def handle(messages: Sequence[ToolsListed]) -> Handled:
        return Handled({})

    for _ in range(3):
        await bus.publish(tools_listed())
    await bus.consume_batches(batched, handle)
    await eventually(lambda: m.value(MESSAGES, pml_outcome="done", **BY) == 3)
    assert m.value(f"{metrics.BUS_BATCH.prometheus_name}_sum", **BY) == 3


async def test_a_query_is_measured_where_it_is_served(m: Measured) -> None:
    bus = MemoryBus()

    async def serve(query: ListTools) -> ToolCatalog:
        raise QueryFailed("not_found", "nothing")

    await bus.serve(catalog.LIST_TOOLS, serve)
    with pytest.raises(QueryFailed):
        await bus.request(catalog.LIST_TOOLS, ListTools(scope=SCOPE))
    served = f"{metrics.QUERIES.prometheus_name}_count"
    assert m.value(served, pml_query="list-tools", pml_outcome="not_found") == 1
