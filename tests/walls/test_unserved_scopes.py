"""Decisions of a scope without a gateway: they wait, block no other scope, and none is lost."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from uuid import uuid4

import pytest
from nats.aio.client import Client
from nats.js import JetStreamContext, api

from libs.pml_common.tests.support.builders import example
from libs.pml_common.tests.support.fakes import RecordingHandler
from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.nats_accounts import NatsAccount
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus import streams
from pml_common.bus.dead_letters import read_dead_letters
from pml_common.bus.errors import Retryable
from pml_common.bus.identity import all_services_identity
from pml_common.bus.nats_bus import NatsBus
from pml_common.contracts import catalog
from pml_common.contracts.catalog import Consumer
from pml_common.contracts.executor import WorkflowParked
from pml_common.contracts.scope import Scope
from pml_common.health import report
from pml_common.service import Stalls
from pml_gateway.entrypoints.bus.in_scope import in_scope
from services.gateway.tests.support.builders import ELSEWHERE, SCOPE

pytestmark = pytest.mark.integration

PARKED = replace(catalog.GATEWAY_ON_WORKFLOW_PARKED, retry_delays_s=(2.0,), stalls_after_s=0.0)
SELDOM = replace(PARKED, retry_delays_s=(20.0,))
"""Redelivered so seldom that a slow machine, too, gets to what was not delivered yet: the server
sends again first."""
WAITING = streams.MAX_ACK_PENDING + 100


class Site:
    """Buses on one account, and what the server knows of the consumer."""

    def __init__(self, account: NatsAccount, stack: AsyncExitStack) -> None:
        self._account = account
        self._stack = stack
        self.operator = Client()

    async def bus(self, service: str) -> NatsBus:
        """Connect a service."""
        bus = await NatsBus.connect(
            self._account.url_of(service), service=service, identity=all_services_identity()
        )
        self._stack.push_async_callback(bus.drain, 1.0)
        return bus

    async def gateway(
        self, scope: Scope, handler: RecordingHandler, consumer: Consumer[WorkflowParked] = SELDOM
    ) -> NatsBus:
        """Connect a gateway that decides in one scope."""
        bus = await self.bus("gateway")
        await bus.consume(consumer, in_scope(scope, handler))
        return bus

    async def connect(self) -> None:
        """Connect as the operator."""
        await self.operator.connect(self._account.url)
        self._stack.push_async_callback(self.operator.close)

    async def info(self) -> api.ConsumerInfo:
        """Return the server's view of the consumer."""
        js = JetStreamContext(self.operator)
        return await js.consumer_info(streams.stream_of(PARKED), PARKED.durable)


@pytest.fixture
async def site(nats_account: NatsAccount) -> AsyncIterator[Site]:
    async with AsyncExitStack() as stack:
        site = Site(nats_account, stack)
        await site.connect()
        yield site


async def health(bus: NatsBus) -> tuple[int, str]:
    """Return the status of `/healthz`, and what it says of the consumers."""
    stalls = Stalls(bus)
    await stalls.look()
    status, body = await report({"consumers": stalls.check})
    checks: dict[str, str] = json.loads(json.dumps(body["checks"]))
    return status, checks["consumers"]


def park(scope: Scope) -> WorkflowParked:
    """Build the park of a run of its own."""
    changed = {"scope": scope, "workflow_id": uuid4(), "event_id": uuid4(), "previous": 0}
    return example(catalog.WORKFLOW_PARKED).model_copy(update=changed)


async def test_a_scope_without_a_gateway_keeps_no_other_back(site: Site) -> None:
    executor = await site.bus("executor")
    waiting = [park(ELSEWHERE) for _ in range(WAITING)]
    for start in range(0, WAITING, 100):
        await asyncio.gather(*map(executor.publish, waiting[start : start + 100]))
    ours, theirs = RecordingHandler(), RecordingHandler()
    here = await site.gateway(SCOPE, ours)

    async def all_were_delivered() -> bool:
        return (await site.info()).num_ack_pending == WAITING

    await eventually(all_were_delivered)
    served = park(SCOPE)
    await executor.publish(served)
    await ours.has_seen(1)
    assert await health(here) == (
        200,
        "gateway-on-workflow-parked has waited 0 s for PML_EXECUTOR_EVT/1, "
        f"which is for a gateway of {ELSEWHERE}",
    )
    await here.drain(PATIENCE_S)  # else half of each round of redeliveries comes here
    there = await site.gateway(ELSEWHERE, theirs)
    await theirs.has_seen(WAITING)

    async def none_is_pending() -> bool:
        return (await site.info()).num_ack_pending == 0

    await eventually(none_is_pending)
    assert ours.seen == [served.message_id]
    assert set(theirs.seen) == {each.message_id for each in waiting}
    assert await read_dead_letters(site.operator) == []
    assert await health(there) == (200, "ok")


async def test_what_fails_in_its_own_scope_is_a_stall_behind_what_waits_for_another(
    site: Site,
) -> None:
    executor = await site.bus("executor")
    away = RecordingHandler(*(Retryable("away") for _ in range(1000)))
    here = await site.gateway(SCOPE, away, PARKED)
    await executor.publish(park(ELSEWHERE))
    failing = park(SCOPE)
    await executor.publish(failing)
    await away.has_seen(1)

    async def told() -> bool:
        status, said = await health(here)
        assert "gateway-on-workflow-parked has failed for" in said
        assert str(failing.workflow_id) in said
        return status == 503

    await eventually(told)
