"""Messages that are stored until each of their consumers has handled them."""

from uuid import uuid4

import pytest

from libs.pml_common.tests.support.builders import example
from libs.pml_common.tests.support.fakes import RecordingBatchHandler, RecordingHandler
from libs.pml_common.tests.support.harness import BusHarness
from libs.pml_local.tests.support.harness import eventually
from pml_common.bus.errors import Fenced
from pml_common.bus.port import Bus, StoredMessage
from pml_common.contracts import catalog
from pml_common.contracts.acceptance import WorkflowAccepted
from pml_common.contracts.base import Message


def accepted() -> WorkflowAccepted:
    known = example(catalog.WORKFLOW_ACCEPTED)
    return known.model_copy(update={"workflow_id": uuid4(), "event_id": uuid4()})


async def stored(bus: Bus, message: WorkflowAccepted) -> list[Message]:
    """Return what is stored about the message's workflow."""
    found = await bus.salvage(catalog.WORKFLOW_ACCEPTED, message.scope, message.entity)
    return [each.message for each in found if isinstance(each, StoredMessage)]


async def test_each_consumer_gets_a_message_that_came_before_it_and_then_it_is_gone(
    harness: BusHarness,
) -> None:
    gateway, executor = await harness.connect("gateway"), await harness.connect("executor")
    message = accepted()
    await gateway.publish(message)
    assert await stored(gateway, message) == [message]
    running, storing = RecordingHandler(), RecordingBatchHandler()
    await executor.consume(catalog.EXECUTOR_ON_WORKFLOW_ACCEPTED, running)
    await running.has_seen(1)
    assert await stored(gateway, message) == [message]
    await gateway.consume_batches(catalog.GATEWAY_ON_WORKFLOW_ACCEPTED, storing)
    await storing.has_seen(1)
    assert running.seen == storing.seen == [message.event_id]
    await eventually(lambda: is_gone(gateway, message))


async def is_gone(bus: Bus, message: WorkflowAccepted) -> bool:
    return not await stored(bus, message)


async def test_a_second_message_about_the_same_entity_is_refused(harness: BusHarness) -> None:
    bus, message = await harness.connect("gateway"), accepted()
    await bus.publish(message)
    for another in (message, message.model_copy(update={"event_id": uuid4()})):
        with pytest.raises(Fenced):
            await bus.publish(another)
    assert await stored(bus, message) == [message]


async def test_one_that_was_handled_is_not_stored_again(harness: BusHarness) -> None:
    gateway, executor = await harness.connect("gateway"), await harness.connect("executor")
    await executor.consume(catalog.EXECUTOR_ON_WORKFLOW_ACCEPTED, RecordingHandler())
    await gateway.consume_batches(catalog.GATEWAY_ON_WORKFLOW_ACCEPTED, RecordingBatchHandler())
    message = accepted()
    await gateway.publish(message)
    await eventually(lambda: is_gone(gateway, message))
    with pytest.raises(Fenced):
        await gateway.publish(message)
    assert await is_gone(gateway, message)
