"""Requests of the batch loop, on a real server."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from uuid import uuid4

import pytest
from nats.aio.client import Client
from nats.js import JetStreamContext

from libs.pml_common.tests.support.fakes import RecordingBatchHandler
from libs.pml_local.tests.support.harness import eventually
from pml_common.bus.identity import all_services_identity
from pml_common.bus.nats_bus import NatsBus
from pml_common.contracts import catalog
from pml_common.contracts.catalog import Batch, Consumer
from pml_common.contracts.gateway import ToolsListed
from pml_common.contracts.scope import Scope

pytestmark = pytest.mark.integration

CONSUMER = Consumer("registry", catalog.TOOLS_LISTED, batch=Batch(500, 1.0))


@pytest.fixture
async def bus(nats_url: str) -> AsyncGenerator[NatsBus]:
    connected = await NatsBus.connect(
        nats_url, service="registry", identity=all_services_identity()
    )
    yield connected
    await connected.drain()


async def publish(bus: NatsBus, count: int) -> None:
    messages = [
        ToolsListed(
            event_id=uuid4(), scope=Scope(org="acme", project="webapp"), server="fs", tools=()
        )
        for _ in range(count)
    ]
    await asyncio.gather(*(bus.publish(message) for message in messages))


async def test_frequent_messages_are_fetched_once_in_the_batchs_time(bus: NatsBus) -> None:
    handler, loop = RecordingBatchHandler(), asyncio.get_running_loop()
    began = loop.time()
    await bus.consume_batches(CONSUMER, handler)
    for _ in range(10):
        await publish(bus, 20)
    await handler.has_seen(200)
    until_they_are_frequent, first_poll = 2, 1
    polls = first_poll + int(loop.time() - began)
    assert len(handler.batches) <= until_they_are_frequent + polls  # waits: one poll a second


async def test_a_consumer_without_messages_waits_in_one_request_and_owes_no_acknowledgement(
    bus: NatsBus, nats_url: str
) -> None:
    handler = RecordingBatchHandler()
    await bus.consume_batches(replace(CONSUMER, batch=Batch(50, 0.05)), handler)
    await publish(bus, 100)
    await handler.has_seen(100)
    client = Client()
    await client.connect(nats_url)
    try:

        async def idle() -> bool:
            found = await JetStreamContext(client).consumer_info(
                "PML_GATEWAY_EVT", CONSUMER.durable
            )
            return (found.num_waiting, found.num_ack_pending, found.num_pending) == (1, 0, 0)

        await eventually(idle)
    finally:
        await client.close()


async def test_messages_after_a_restart_of_the_connection_are_handled(bus: NatsBus) -> None:
    handler = RecordingBatchHandler()
    await bus.consume_batches(CONSUMER, handler)
    await bus.restart()  # as after a reconnect: the pending request counts as lost
    await publish(bus, 5)
    await handler.has_seen(5)
    assert len(set(handler.seen)) == 5
