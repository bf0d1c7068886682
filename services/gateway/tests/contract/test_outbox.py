"""Contract of outboxes."""

import asyncio

import pytest

from pml_gateway.ports import Outbox, WorkflowStore
from services.gateway.tests.conftest import Stores
from services.gateway.tests.support.builders import ELSEWHERE, workflow

pytestmark = pytest.mark.integration


@pytest.fixture
def outbox(stores: Stores) -> Outbox:
    return stores.outbox


@pytest.fixture
def workflows(stores: Stores) -> WorkflowStore:
    return stores.workflows


async def test_what_was_stored_comes_out_with_the_trace_it_is_part_of(
    outbox: Outbox, workflows: WorkflowStore
) -> None:
    here = workflow(traceparent="00-" + "a" * 32 + "-" + "b" * 16 + "-01")
    there = workflow(scope=ELSEWHERE)
    await workflows.accept(here, (here.requested,))
    await workflows.accept(there, (there.requested,))
    claimed = {each.message.message_id: each for each in await outbox.claim(10)}
    assert claimed[here.requested.event_id].message == here.requested
    assert claimed[here.requested.event_id].traceparent == here.traceparent
    assert claimed[there.requested.event_id].traceparent is None


async def test_what_one_has_claimed_another_does_not_get(
    outbox: Outbox, workflows: WorkflowStore
) -> None:
    for _ in range(6):
        new = workflow()
        await workflows.accept(new, (new.requested,))
    shares = await asyncio.gather(*(outbox.claim(2) for _ in range(4)))
    claimed = [each.message.message_id for share in shares for each in share]
    assert len(claimed) == len(set(claimed)) == 6


async def test_what_was_dropped_never_comes_again(outbox: Outbox, workflows: WorkflowStore) -> None:
    one, two = workflow(), workflow()
    await workflows.accept(one, (one.requested,))
    await outbox.drop([one.requested.event_id, two.requested.event_id])
    assert await outbox.claim(10) == []
    await outbox.drop([])
