"""Outages and restarts of the server, and loss of its state."""

import asyncio
from dataclasses import replace
from time import monotonic
from uuid import uuid4

import pytest
from nats.aio.client import Client
from nats.js import JetStreamContext

from libs.pml_common.tests.support.fakes import RecordingHandler
from libs.pml_local.tests.support.harness import RunningNats, eventually, provision
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus import pulling
from pml_common.bus.client import DirectClient
from pml_common.bus.errors import BusUnavailable, QueryFailed
from pml_common.bus.identity import all_services_identity
from pml_common.bus.nats_bus import NatsBus
from pml_common.contracts import catalog
from pml_common.contracts.gateway import ToolsListed
from pml_common.contracts.registry import ListTools, ToolCatalog
from pml_common.contracts.scope import Scope

pytestmark = pytest.mark.integration

DURABLE = catalog.REGISTRY_ON_TOOLS_LISTED.durable
SCOPE = Scope(org="acme", project="webapp")


def tools_listed() -> ToolsListed:
    return ToolsListed(event_id=uuid4(), scope=SCOPE, server="fs", tools=())


async def no_tools(question: ListTools) -> ToolCatalog:
    return ToolCatalog(tools=())


async def request_stands(client: Client) -> None:
    """Wait until the server has a replica's request for messages."""

    async def waiting() -> int | None:
        js = JetStreamContext(client)
        return (await js.consumer_info("PML_GATEWAY_EVT", DURABLE)).num_waiting

    await eventually(waiting)


async def test_everything_works_again_after_the_server_was_killed_and_restarted(
    nats_server: RunningNats, bus: NatsBus
) -> None:
    recorder, heard = RecordingHandler(), RecordingHandler()

    async def hear(message: ToolsListed) -> None:
        await heard(message)

    await bus.consume(catalog.REGISTRY_ON_TOOLS_LISTED, recorder)
    await bus.listen(catalog.TOOLS_LISTED, hear)
    await bus.serve(catalog.LIST_TOOLS, no_tools)
    before, after = tools_listed(), tools_listed()
    await bus.publish(before)
    await recorder.has_seen(1)
    await nats_server.kill()
    await nats_server.start()
    await eventually(bus.healthy)
    await bus.publish(after)
    await eventually(lambda: after.event_id in recorder.seen)
    await heard.has_seen(2)
    # The server died right after the first was handled: its ack may be lost, so it may come again.
    assert set(recorder.seen) == {before.event_id, after.event_id}
    assert recorder.seen.count(after.event_id) == 1
    assert await bus.request(catalog.LIST_TOOLS, ListTools(scope=SCOPE)) == ToolCatalog(tools=())
    history = await bus.history(SCOPE, "fs")
    assert [record.message for record in history] == [before, after]


async def test_without_a_server_everything_fails_at_once(
    nats_server: RunningNats, bus: NatsBus
) -> None:
    await nats_server.kill()

    async def is_unhealthy() -> bool:
        return not await bus.healthy()

    await eventually(is_unhealthy)
    async with asyncio.timeout(PATIENCE_S):
        with pytest.raises(BusUnavailable, match="not connected"):
            await bus.publish(tools_listed())
        with pytest.raises(BusUnavailable, match="not connected"):
            await bus.history(SCOPE, "fs")
        with pytest.raises(QueryFailed, match="not connected") as failed:
            await bus.request(catalog.LIST_TOOLS, ListTools(scope=SCOPE))
        assert failed.value.code == "unavailable"
        await bus.drain()


async def test_a_handler_at_work_while_the_server_restarts_is_run_again(
    nats_server: RunningNats, bus: NatsBus
) -> None:
    consumer = replace(catalog.REGISTRY_ON_TOOLS_LISTED, ack_wait_s=0.5, retry_delays_s=(0.1,))
    begun, release, recorder = asyncio.Event(), asyncio.Event(), RecordingHandler()
    fact = tools_listed()

    async def handle(message: ToolsListed) -> list[ToolsListed]:
        if message == fact:
            return []
        await recorder(message)
        begun.set()
        await release.wait()
        return [fact]

    await bus.consume(consumer, handle)
    cause = tools_listed()
    await bus.publish(cause)
    async with asyncio.timeout(PATIENCE_S):
        await begun.wait()
    await nats_server.kill()
    release.set()
    await nats_server.start()

    async def stored() -> bool:
        if not await bus.healthy():
            return False
        return fact in [record.message for record in await bus.history(SCOPE, "fs")]

    await eventually(stored)
    assert set(recorder.seen) == {cause.event_id}


async def test_a_consumer_deleted_under_a_replica_is_read_again_once_provisioned(
    nats_url: str, bus: NatsBus, client: Client
) -> None:
    recorder = RecordingHandler()
    await bus.consume(catalog.REGISTRY_ON_TOOLS_LISTED, recorder)
    await request_stands(client)
    await JetStreamContext(client).delete_consumer("PML_GATEWAY_EVT", DURABLE)
    await provision(nats_url)
    await bus.publish(tools_listed())
    await recorder.has_seen(1)


async def test_streams_deleted_under_a_replica_are_used_again_once_provisioned(
    nats_url: str, bus: NatsBus, client: Client
) -> None:
    recorder = RecordingHandler()
    await bus.consume(catalog.REGISTRY_ON_TOOLS_LISTED, recorder)
    await request_stands(client)
    await JetStreamContext(client).delete_stream("PML_GATEWAY_EVT")
    with pytest.raises(BusUnavailable):
        await bus.publish(tools_listed())
    await provision(nats_url)
    await bus.publish(tools_listed())
    await recorder.has_seen(1)


class Forgetful(DirectClient):
    """A client that loses the first request for messages."""

    lost = False

    async def publish(
        self,
        subject: str,
        payload: bytes = b"",
        reply: str = "",
        headers: dict[str, str] | None = None,
    ) -> None:
        if not self.lost and subject.startswith("$JS.API.CONSUMER.MSG.NEXT."):
            self.lost = True
            return
        await super().publish(subject, payload, reply, headers)


async def test_a_lost_request_for_messages_is_repeated(
    nats_url: str, bus: NatsBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulling, "HEARTBEAT_S", 0.05)
    client = Forgetful()
    await client.connect(nats_url)
    forgetful = NatsBus(client, service="registry", instance="r2", identity=all_services_identity())
    recorder = RecordingHandler()
    await forgetful.consume(catalog.REGISTRY_ON_TOOLS_LISTED, recorder)
    await bus.publish(tools_listed())
    await recorder.has_seen(1)
    assert client.lost
    await forgetful.drain()


async def test_outages_of_the_server_are_recorded(nats_server: RunningNats, bus: NatsBus) -> None:
    assert bus.outages() == ()
    await nats_server.kill()
    killed_at = monotonic()
    (ongoing,) = await eventually(bus.outages)
    assert ongoing.began < killed_at
    restarted_at = monotonic()
    await nats_server.start()

    def over() -> bool:
        (once,), (again,) = bus.outages(), bus.outages()
        return once == again  # an ongoing outage ends at the time of the call

    await eventually(over)
    (outage,) = bus.outages()
    assert outage.began == ongoing.began
    assert restarted_at < outage.ended < monotonic()


async def test_a_silent_server_is_an_outage_too(nats_server: RunningNats, bus: NatsBus) -> None:
    with nats_server.paused():
        await eventually(bus.outages)
    await eventually(bus.healthy)
