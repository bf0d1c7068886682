"""Provisioning of streams on a single server."""

import asyncio
import hashlib
from collections.abc import Sequence

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext

from libs.pml_common.tests.support.builders import example
from libs.pml_common.tests.support.fakes import RecordingHandler
from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.nats_accounts import NatsAccount
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus import codec, names, payloads, stream_check, streams
from pml_common.bus.errors import NotProvisioned, Rejected
from pml_common.bus.identity import all_services_identity
from pml_common.bus.journal import read_stored
from pml_common.bus.nats_bus import NatsBus
from pml_common.bus.payloads import NatsPayloads
from pml_common.bus.provision import Change, Plan, Provisioned, provisioner
from pml_common.bus.server_api import Config, ask
from pml_common.bus.stream_check import shortfall
from pml_common.bus.streams import StreamSettings
from pml_common.contracts import catalog

pytestmark = pytest.mark.integration

ONE, THREE = StreamSettings(), StreamSettings(replicas=3)
ALL = len(streams.stream_names()) + len(catalog.CONSUMERS) + 1  # of dead letters
COMMANDS = names.stream_of("cmd", "executor")


@pytest.fixture
def nats_url(bare_account: NatsAccount) -> str:
    return bare_account.url


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
    wanted = next(each for each in streams.stream_configs(ONE) if each["name"] == COMMANDS)
    config = {**wanted, "storage": "memory", "max_age": int(600e9)}
    await ask(client, f"STREAM.CREATE.{COMMANDS}", config)
    done = {each.name: each for each in await provision(nats_url, Plan(ONE))}
    told = done[COMMANDS]
    assert told.changes == {"max_age": Change(600.0, streams.MESSAGE_AGE_S)}
    assert told.problem is not None
    assert told.problem.startswith("storage stays memory: the server cannot make it file")
    assert f"nats stream rm {COMMANDS}" in told.problem
    assert [each.name for each in done.values() if each.problem] == [COMMANDS]
    info = await ask(client, f"STREAM.INFO.{COMMANDS}")
    assert info["config"]["storage"] == "memory"
    assert info["config"]["max_age"] == int(streams.MESSAGE_AGE_S * 1e9)
    assert "stored in memory" in (shortfall([info], ONE) or "")


EVENTS = "PML_GATEWAY_EVT"
TAMPERED: dict[str, Config] = {
    "republish": {"republish": {"src": "pml.evt.gateway.>", "dest": "$KV.PML_MEMOS.>"}},
    "sources": {"sources": [{"name": "PML_EXECUTOR_EVT"}]},
    "no_ack": {"no_ack": True},
    "subject_transform": {"subject_transform": {"src": "pml.evt.gateway.>", "dest": "x.>"}},
    "subjects": {"subjects": ["pml.evt.gateway.>", "$SRV.>"], "no_ack": True},
    "max_msgs": {"max_msgs": 1},
    "allow_rollup_hdrs": {"allow_rollup_hdrs": True},
    "max_age": {"max_age": int(600e9)},
}


@pytest.mark.parametrize("field", TAMPERED)
async def test_a_service_refuses_what_differs_and_provisioning_sets_it_right(
    nats_url: str, client: Client, field: str
) -> None:
    await provision(nats_url, Plan(ONE))
    config = (await ask(client, f"STREAM.INFO.{EVENTS}"))["config"]
    await ask(client, f"STREAM.UPDATE.{EVENTS}", {**config, **TAMPERED[field]})
    with pytest.raises(NotProvisioned, match=rf"{EVENTS}: .*{field} is .*`pml bus provision`"):
        await connect(nats_url, "registry")
    assert (
        field in {each.name: each for each in await provision(nats_url, Plan(ONE))}[EVENTS].changes
    )
    assert _settings((await ask(client, f"STREAM.INFO.{EVENTS}"))["config"]) == _settings(config)
    await (await connect(nats_url, "registry")).drain(0.1)


def _settings(config: Config) -> Config:
    return {name: value for name, value in config.items() if name != "metadata"}


async def test_what_the_server_refuses_to_set_right_is_reported(
    nats_url: str, client: Client
) -> None:
    await provision(nats_url, Plan(ONE))
    config = (await ask(client, f"STREAM.INFO.{EVENTS}"))["config"]
    await ask(client, f"STREAM.UPDATE.{EVENTS}", {**config, "allow_msg_schedules": True})
    done = {each.name: each for each in await provision(nats_url, Plan(ONE))}[EVENTS]
    assert done.state == "failed"
    assert "allow_msg_schedules" in done.changes
    assert "can not be disabled" in (done.problem or "")
    assert f"nats stream rm {EVENTS}" in (done.problem or "")


async def test_a_consumer_that_differs_is_refused_and_set_right(
    nats_url: str, client: Client
) -> None:
    await provision(nats_url, Plan(ONE))
    consumer = catalog.REGISTRY_ON_TOOLS_LISTED
    verb, body = streams.creation_of(
        consumer, {**streams.consumer_config(consumer), "max_deliver": 1, "headers_only": True}
    )
    await ask(client, verb, body)
    with pytest.raises(NotProvisioned, match=r"registry-on-tools-listed: .*headers_only is True"):
        await connect(nats_url, "registry")
    await provision(nats_url, Plan(ONE))
    await (await connect(nats_url, "registry")).drain(0.1)


async def test_consumers_of_the_release_before_get_their_bounds_without_loss(
    nats_url: str, client: Client
) -> None:
    """Those whose messages wait for a replica of their scope had the bounds of all others."""
    await provision(nats_url, Plan(ONE))
    consumer = catalog.GATEWAY_ON_WORKFLOW_PARKED
    verb, body = streams.creation_of(
        consumer,
        {
            **streams.consumer_config(consumer),
            "max_deliver": 250,
            "max_ack_pending": streams.MAX_ACK_PENDING,
        },
    )
    await ask(client, verb, body)
    executor = await connect(nats_url, "executor")
    parked = example(catalog.WORKFLOW_PARKED).model_copy(update={"previous": 0})
    await executor.publish(parked)
    js, stream = JetStreamContext(client), streams.stream_of(consumer)
    pulled = await js.pull_subscribe_bind(consumer.durable, stream)
    [pending] = await pulled.fetch(1, PATIENCE_S)
    with pytest.raises(NotProvisioned, match="max_ack_pending is 1000, not -1"):
        await connect(nats_url, "gateway")
    done = {each.name: each for each in await provision(nats_url, Plan(ONE))}
    assert done[f"{stream} > {consumer.durable}"].changes == {
        "max_deliver": Change(250, catalog.WHILE_STORED),
        "max_ack_pending": Change(streams.MAX_ACK_PENDING, streams.UNLIMITED),
    }
    gateway, recorder = await connect(nats_url, "gateway"), RecordingHandler()
    await pending.nak()
    await gateway.consume(consumer, recorder)
    await recorder.has_seen(1)
    assert recorder.seen == [parked.message_id]
    await asyncio.gather(executor.drain(0.1), gateway.drain(0.1))


async def connect(url: str, service: str, patience_s: float = 0.0) -> NatsBus:
    return await NatsBus.connect(
        url, service=service, identity=all_services_identity(), patience_s=patience_s or 0.5
    )


async def test_what_a_running_service_depends_on_is_checked_for_health(
    nats_url: str, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    await provision(nats_url, Plan(ONE))
    monkeypatch.setattr(stream_check, "CHECK_EVERY_S", 0.0)
    found = await connect(nats_url, "registry")
    assert await found.shortfall() is None
    await ask(client, f"STREAM.DELETE.{EVENTS}")
    told = await eventually(found.shortfall)
    assert f"{EVENTS} does not exist" in told
    assert "pml bus provision" in told
    await found.drain(0.1)


async def test_a_service_waits_until_its_streams_are_provisioned(nats_url: str) -> None:
    starting = asyncio.create_task(connect(nats_url, "registry", PATIENCE_S))
    await asyncio.sleep(0)
    await provision(nats_url, Plan(ONE))
    await (await starting).drain(0.1)


async def test_more_replicas_than_servers_are_refused_in_plain_words(nats_url: str) -> None:
    await provision(nats_url, Plan(ONE))
    done = await provision(nats_url, Plan(THREE))
    failed = [each for each in done if each.state == "failed"]
    assert [each.name for each in failed] == streams.stream_names()
    assert "cannot have 3 replicas on the available servers" in (failed[0].problem or "")
    assert "PML_STREAM_REPLICAS" in (failed[0].problem or "")


async def test_a_service_that_finds_fewer_replicas_reports_it_and_goes_on(
    nats_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    await provision(nats_url, Plan(ONE))
    found = await NatsBus.connect(
        nats_url, service="executor", identity=all_services_identity(), stream_settings=THREE
    )
    told = await found.shortfall()
    assert told is not None
    assert told.startswith(f"1 of 3 configured replicas: {COMMANDS},")
    assert told in caplog.text
    assert await found.healthy()
    await found.drain(0.1)


def test_an_offline_replica_is_reported() -> None:
    info = {
        "config": {"name": "X", "num_replicas": 3, "storage": "file"},
        "cluster": {"leader": "s0", "replicas": [{"name": "s1", "offline": True}, {"name": "s2"}]},
    }
    assert shortfall([info], THREE) == "replicas offline: X on s1"
    assert shortfall([info], ONE) == "replicas offline: X on s1"


BODY = b"x" * 300_000
KEY = hashlib.sha256(BODY).hexdigest()


async def test_an_incomplete_payload_of_a_lagging_replica_is_read_again(
    nats_url: str, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    await provision(nats_url, Plan(ONE))
    kept, reads = NatsPayloads(client, JetStreamContext(client), "gateway"), list[int]()

    async def lagging(
        client: Client, stream: str, subject: str, *, most_bytes: int
    ) -> Sequence[Msg]:
        chunks = await read_stored(client, stream, subject, most_bytes=most_bytes)
        reads.append(len(chunks))
        return chunks[:2] if len(reads) == 1 else chunks

    await kept.put(KEY, BODY)
    monkeypatch.setattr(payloads, "read_stored", lagging)
    monkeypatch.setattr(payloads, "LAG_DELAYS_S", (0.0, 0.0))
    assert await kept.get(KEY) == BODY
    assert reads == [4, 4]


async def test_a_payload_that_lost_a_chunk_cannot_be_read(
    nats_url: str, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    await provision(nats_url, Plan(ONE))
    js = JetStreamContext(client)
    kept = NatsPayloads(client, js, "gateway")
    await kept.put(KEY, BODY)
    await js.delete_msg(names.PAYLOAD_STREAM, 2)
    monkeypatch.setattr(payloads, "LAG_DELAYS_S", (0.0, 0.0))
    with pytest.raises(Rejected, match="is no longer in"):
        await codec.check_out(b"", {codec.PAYLOAD: KEY}, kept)


async def test_a_body_that_the_release_before_stored_is_read(nats_url: str, client: Client) -> None:
    await provision(nats_url, Plan(ONE))
    js = JetStreamContext(client)
    kept = NatsPayloads(client, js, "gateway")
    assert await kept.get(KEY) is None
    former = await js.create_object_store(payloads.FORMER_BUCKET)  # pyright: ignore[reportUnknownMemberType] - its **params
    await former.put(KEY, BODY)
    await provision(nats_url, Plan(ONE))
    assert await kept.get(KEY) == BODY


async def test_a_body_is_stored_once_a_period_and_again_in_the_next(
    nats_url: str, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    await provision(nats_url, Plan(ONE))
    kept, counts = NatsPayloads(client, JetStreamContext(client), "gateway"), list[int]()
    for now in (0.0, streams.MESSAGE_AGE_S - 1, streams.MESSAGE_AGE_S):
        monkeypatch.setattr("time.time", lambda now=now: now)
        await kept.put(KEY, BODY)
        info = await ask(client, f"STREAM.INFO.{names.PAYLOAD_STREAM}")
        counts.append(info["state"]["messages"])
    assert counts == [4, 4, 8]
    assert await kept.get(KEY) == BODY
