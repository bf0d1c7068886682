"""Provisioning of streams on a single server."""

import hashlib
from collections.abc import Sequence

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext, api

from pml_common.bus import codec, names, payloads, streams
from pml_common.bus.errors import Rejected, TooFewServers
from pml_common.bus.identity import all_services_identity
from pml_common.bus.journal import read_stored
from pml_common.bus.nats_bus import NatsBus
from pml_common.bus.payloads import NatsPayloads
from pml_common.bus.provision import Change, Plan, Provisioned, provisioner
from pml_common.bus.stream_check import shortfall
from pml_common.bus.streams import StreamSettings
from pml_common.contracts import catalog

pytestmark = pytest.mark.integration

ONE, THREE = StreamSettings(), StreamSettings(replicas=3)
ALL = len(streams.stream_names()) + len(catalog.CONSUMERS) + 1  # of dead letters
COMMANDS = names.stream_of("cmd", "executor")


async def provision(url: str, plan: Plan) -> list[Provisioned]:
    async with provisioner(url, plan) as run:
        return await run.provision()


async def test_missing_streams_are_created_once(nats_url: str, client: Client) -> None:
    dry = await provision(nats_url, Plan(ONE, dry_run=True))
    assert [each.state for each in dry] == ["created"] * ALL
    assert await JetStreamContext(client).streams_info() == []
    first, second = [await provision(nats_url, Plan(ONE)) for _ in range(2)]
    assert first == dry
    assert [each.state for each in second] == ["unchanged"] * ALL


async def test_a_field_that_cannot_change_in_place_is_reported_with_the_remedy(
    nats_url: str, client: Client
) -> None:
    js = JetStreamContext(client)
    wanted = next(each for each in streams.stream_configs(ONE) if each.name == COMMANDS)
    await js.add_stream(wanted.evolve(storage=api.StorageType.MEMORY, max_age=600.0))  # pyright: ignore[reportUnknownMemberType] - its **params
    done = {each.name: each for each in await provision(nats_url, Plan(ONE))}
    told = done[COMMANDS]
    assert told.changes == {"max_age": Change(600.0, streams.MESSAGE_AGE_S)}
    assert told.problem is not None
    assert told.problem.startswith("storage stays memory: the server cannot make it file")
    assert f"nats stream rm {COMMANDS}" in told.problem
    assert [each.name for each in done.values() if each.problem] == [COMMANDS]
    info = await js.stream_info(COMMANDS)
    assert (info.config.storage, info.config.max_age) == ("memory", streams.MESSAGE_AGE_S)
    assert "stored in memory" in (shortfall([info], ONE) or "")


async def test_more_replicas_than_servers_are_refused_in_plain_words(nats_url: str) -> None:
    await provision(nats_url, Plan(ONE))
    done = await provision(nats_url, Plan(THREE))
    failed = [each for each in done if each.state == "failed"]
    assert [each.name for each in failed] == streams.stream_names()
    assert "cannot have 3 replicas on the available servers" in (failed[0].problem or "")
    assert "PML_STREAM_REPLICAS" in (failed[0].problem or "")


@pytest.mark.parametrize("service", ["gateway", "analyzer"])
async def test_a_service_that_cannot_create_its_streams_reports_the_reason(
    nats_url: str, service: str
) -> None:
    with pytest.raises(TooFewServers, match="start more NATS servers"):
        await NatsBus.connect(
            nats_url, service=service, identity=all_services_identity(), stream_settings=THREE
        )


async def test_a_service_that_finds_fewer_replicas_reports_it_and_goes_on(
    nats_url: str, bus: NatsBus, caplog: pytest.LogCaptureFixture
) -> None:
    found = await NatsBus.connect(
        nats_url, service="executor", identity=all_services_identity(), stream_settings=THREE
    )
    told = await found.shortfall()
    assert told is not None
    assert told.startswith(f"1 of 3 configured replicas: {COMMANDS},")
    assert told in caplog.text
    assert await found.healthy()
    assert await bus.shortfall() is None
    await found.drain(0.1)


def test_an_offline_replica_is_reported() -> None:
    peers = [api.PeerInfo(name="s1", offline=True), api.PeerInfo(name="s2", current=True)]
    info = api.StreamInfo(
        config=api.StreamConfig(name="X", num_replicas=3, storage=api.StorageType.FILE),
        state=api.StreamState(0, 0, 0, 0, 0),
        cluster=api.ClusterInfo(leader="s0", replicas=peers),
    )
    assert shortfall([info], THREE) == "replicas offline: X on s1"
    assert shortfall([info], ONE) == "replicas offline: X on s1"


BODY = b"x" * 300_000
KEY = hashlib.sha256(BODY).hexdigest()


async def test_an_incomplete_payload_of_a_lagging_replica_is_read_again(
    bus: NatsBus, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, reads = NatsPayloads(client, JetStreamContext(client)), list[int]()

    async def lagging(client: Client, stream: str, subject: str) -> Sequence[Msg]:
        chunks = await read_stored(client, stream, subject)
        reads.append(len(chunks))
        return chunks[:2] if len(reads) == 1 else chunks

    await kept.put(KEY, BODY)
    monkeypatch.setattr(payloads, "read_stored", lagging)
    monkeypatch.setattr(payloads, "LAG_DELAYS_S", (0.0, 0.0))
    assert await kept.get(KEY) == BODY
    assert reads == [3, 3]


async def test_a_payload_that_lost_a_chunk_cannot_be_read(
    bus: NatsBus, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    js = JetStreamContext(client)
    kept = NatsPayloads(client, js)
    await kept.put(KEY, BODY)
    await js.delete_msg(names.PAYLOAD_STREAM, 2)
    monkeypatch.setattr(payloads, "LAG_DELAYS_S", (0.0, 0.0))
    with pytest.raises(Rejected, match="is no longer in"):
        await codec.check_out(b"", {codec.PAYLOAD: KEY}, kept)
