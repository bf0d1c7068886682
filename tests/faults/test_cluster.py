"""Three NATS servers under load: one is killed, one is partitioned from the others."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import TypeVar
from uuid import UUID, uuid4

import pytest
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import StreamConfig
from nats.js.errors import NotFoundError

from libs.pml_common.tests.support import builders
from libs.pml_common.tests.support.builders import after
from libs.pml_common.tests.support.harness import UncheckedBus, set_up
from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus import names, streams
from pml_common.bus.errors import BusUnavailable, Fenced
from pml_common.bus.identity import all_services_identity
from pml_common.bus.nats_bus import NatsBus
from pml_common.bus.port import StoredMessage
from pml_common.bus.provision import Change, Plan, provisioner
from pml_common.bus.streams import StreamSettings
from pml_common.contracts import catalog
from pml_common.contracts.base import Message
from pml_common.contracts.catalog import MessageType, Service
from pml_common.contracts.executor import TraceRecorded
from pml_common.contracts.scope import Scope
from tests.faults.cluster import SIZE, Cluster
from tests.faults.cluster_load import CONSUMER, Load, check, entry, until_acknowledged

pytestmark = [pytest.mark.integration, pytest.mark.nightly]

M = TypeVar("M", bound=Message)
JOURNALS = names.stream_of("evt", "executor")
THREE = StreamSettings(replicas=SIZE)


def example(of: MessageType[M]) -> M:
    """The example of a message, in a scope of its own."""
    return builders.example(of).model_copy(
        update={"scope": Scope(org="acme", project=uuid4().hex), "workflow_id": uuid4()}
    )


class ClusterHarness:
    """The cluster and the services' connections to it."""

    def __init__(self, cluster: Cluster, stack: AsyncExitStack) -> None:
        self.cluster = cluster
        self._stack = stack

    async def connect(self, service: Service, server: int) -> NatsBus:
        """Connect a replica of a service that uses one server as long as it is available."""
        bus = await UncheckedBus.connect(
            self.cluster.url_of(service, server),
            service=service,
            identity=all_services_identity(),
            stream_settings=THREE,
            patience_s=30.0,
        )
        self._stack.push_async_callback(bus.drain, 5.0)
        return bus

    async def load(self, sender: int, others: int) -> Load:
        """Start services: the gateway on one server, the others on another."""
        command = example(catalog.RUN_WORKFLOW)
        load = Load(
            scope=command.scope,
            command=command,
            sender=await self.connect("gateway", sender),
            consumer=await self.connect("registry", others),
            writers=(
                await self.connect("executor", others),
                await self.connect("executor", others),
            ),
        )
        client = Client()
        await client.connect(self.cluster.url.split(","))
        await set_up(client, CONSUMER)
        await client.close()
        await load.start()
        return load

    async def finish(self, load: Load, reader: int) -> None:
        """Stop the load, and check it on one server once all agree."""
        await load.stop()
        bus = await self.connect("gateway", reader)
        await eventually(lambda: check(load, bus))


@pytest.fixture(scope="module")
async def cluster(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    """Three servers, with three replicas of each stream."""
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        await cluster.start()
        await eventually(lambda: _provisioned(cluster), within=2 * PATIENCE_S)
        yield cluster
    finally:
        await cluster.stop()


async def _provisioned(cluster: Cluster) -> bool:
    """Provision; false while a server has not joined the others yet, and where a request got lost
    with a route: servers that find each other twice close one of the two."""
    try:
        async with provisioner(cluster.url, Plan(THREE)) as run:
            return not [each for each in await run.provision() if each.problem]
    except BusUnavailable:
        return False


@pytest.fixture
async def harness(cluster: Cluster) -> AsyncIterator[ClusterHarness]:
    async with AsyncExitStack() as stack:
        yield ClusterHarness(cluster, stack)


async def test_a_stream_that_exists_gets_its_replicas_by_provisioning(
    cluster: Cluster, harness: ClusterHarness, caplog: pytest.LogCaptureFixture
) -> None:
    stream = streams.stream_of(catalog.REGISTRY_ON_TOOLS_LISTED)
    async with cluster.operator() as operator:
        config = await eventually(lambda: _config(operator, stream))
        await operator.update_stream(config.evolve(num_replicas=1))  # pyright: ignore[reportUnknownMemberType] - its **params
        lacking = await harness.connect("gateway", 0)
        assert f"1 of 3 configured replicas: {stream};" in (await lacking.shortfall() or "")
        assert "pml bus provision" in caplog.text
        async with provisioner(cluster.url, Plan(THREE)) as run:
            done = await run.provision()
            again = await run.provision()
        async with provisioner(cluster.url, Plan(StreamSettings(), may_lower=False)) as run:
            again += await run.provision()
        assert [each.problem for each in (*done, *again)] == [None] * 3 * len(done)
        changed = {each.name: each.changes for each in done if each.state == "changed"}
        assert changed == {stream: {"num_replicas": Change(1, 3)}}
        assert {each.state for each in again} == {"unchanged"}
        assert await (await harness.connect("gateway", 1)).shortfall() is None
        durable = catalog.REGISTRY_ON_TOOLS_LISTED.durable
        consumer = (await operator.consumer_info(stream, durable)).cluster
        assert consumer is not None
        assert len(consumer.replicas or ()) == SIZE - 1


async def _config(operator: JetStreamContext, stream: str) -> StreamConfig | None:
    """Return a stream's configuration; None from a server that does not know the stream yet."""
    try:
        return (await operator.stream_info(stream)).config
    except NotFoundError:
        return None


async def test_a_server_that_may_have_missed_an_acceptance_does_not_deny_it(
    cluster: Cluster, harness: ClusterHarness
) -> None:
    """A partitioned server has an old replica; what it lacks may have been accepted elsewhere."""
    accepted = example(catalog.WORKFLOW_ACCEPTED)
    scope, entity = accepted.scope, str(accepted.workflow_id)
    leader = await cluster.leader_of(names.events_stream(catalog.WORKFLOW_ACCEPTED))
    apart, other = (leader + 1) % SIZE, (leader + 2) % SIZE
    lagging, writer = (
        await harness.connect("gateway", apart),
        await harness.connect("gateway", other),
    )
    await cluster.part(apart)
    try:
        await until_acknowledged(lambda: writer.publish(accepted))
        with pytest.raises(BusUnavailable):
            await lagging.salvage(catalog.WORKFLOW_ACCEPTED, scope, entity)
    finally:
        await cluster.join(apart)
    [found] = await until_acknowledged(
        lambda: lagging.salvage(catalog.WORKFLOW_ACCEPTED, scope, entity)
    )
    assert isinstance(found, StoredMessage)


async def test_a_stale_append_of_a_message_that_is_stored_is_refused_too(
    harness: ClusterHarness,
) -> None:
    """A cluster checks for duplicates before expectations; a single server, after."""
    run, writer = example(catalog.RUN_FINISHED), await harness.connect("executor", 0)
    one, other = (_append(run.scope, run.workflow_id, text) for text in ("one", "other"))
    first = await until_acknowledged(lambda: writer.publish(after(0, one)))
    with pytest.raises(Fenced):
        await writer.publish(after(0, one))
    with pytest.raises(Fenced):
        await writer.publish(after(first, one))
    await until_acknowledged(lambda: writer.publish(after(first, other)))
    with pytest.raises(Fenced):
        await writer.publish(after(first, one))


async def test_the_leader_is_killed_under_load_and_nothing_acknowledged_is_lost(
    cluster: Cluster, harness: ClusterHarness
) -> None:
    leader = await cluster.leader_of(JOURNALS)
    load = await harness.load(sender=leader, others=(leader + 1) % SIZE)
    await cluster.kill(leader)
    await load.goes_on()
    await cluster.revive(leader)
    await load.goes_on()
    await harness.finish(load, reader=leader)


async def test_a_partitioned_server_is_not_trusted_under_load(
    cluster: Cluster, harness: ClusterHarness
) -> None:
    parted = await cluster.leader_of(JOURNALS)
    others = (parted + 1) % SIZE
    load = await harness.load(sender=others, others=others)
    left, watcher = (
        await harness.connect("executor", parted),
        await harness.connect("gateway", parted),
    )
    run = example(catalog.RUN_FINISHED)
    opened = _append(run.scope, run.workflow_id, "opened")
    first = await load.writers[0].publish(after(0, opened))

    await cluster.part(parted)
    stale = _append(run.scope, run.workflow_id, "stale")
    unheard, _ = await asyncio.gather(
        left.publish(after(first, stale)), load.goes_on(), return_exceptions=True
    )
    assert isinstance(unheard, BusUnavailable)
    await load.goes_on()
    last = await load.writers[0].publish(after(first, run))
    await cluster.join(parted)

    async def is_read() -> bool:
        stored = await watcher.history(run.scope, str(run.workflow_id), of="executor")
        return [each.sequence for each in stored] == [first, last]

    await eventually(is_read)
    with pytest.raises(Fenced):
        await until_acknowledged(lambda: left.publish(after(first, stale)))
    await harness.finish(load, reader=parted)


def _append(scope: Scope, workflow_id: UUID, text: str) -> TraceRecorded:
    entries = (entry(workflow_id, text),)
    return TraceRecorded(event_id=uuid4(), scope=scope, workflow_id=workflow_id, entries=entries)
