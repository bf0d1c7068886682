"""The supervisor's provisioning of NATS: after every start, without loss."""

import secrets
from pathlib import Path
from uuid import uuid4

import pytest

from libs.pml_local.tests.support.harness import RunningNats, provision
from pml_common.bus import connection, streams
from pml_common.bus.identity import all_services_identity
from pml_common.bus.nats_bus import NatsBus
from pml_common.bus.server_api import ask
from pml_common.bus.streams import StreamSettings
from pml_common.contracts.gateway import ToolsListed
from pml_common.contracts.scope import Scope
from pml_local.errors import PartFailedError
from pml_local.nats import NatsServer
from pml_local.parts import start_part

pytestmark = pytest.mark.integration

SCOPE = Scope(org="acme", project="webapp")
EVENTS = "PML_GATEWAY_EVT"


async def _reconnected() -> None:
    pass


async def test_a_restart_sets_right_what_was_changed_and_keeps_what_is_stored(
    nats_server: RunningNats,
) -> None:
    message = ToolsListed(event_id=uuid4(), scope=SCOPE, server="fs", tools=())
    bus = await NatsBus.connect(
        nats_server.url_of("gateway"), service="gateway", identity=all_services_identity()
    )
    await bus.publish(message)
    await bus.drain(0.1)
    operator = await connection.connect(
        nats_server.url, "operator", _reconnected, 5.0, inbox="_INBOX.operator"
    )
    config = (await ask(operator, f"STREAM.INFO.{EVENTS}"))["config"]
    await ask(operator, f"STREAM.UPDATE.{EVENTS}", {**config, "no_ack": True})
    consumer = streams.ALL_CONSUMERS[0]
    await ask(operator, f"CONSUMER.DELETE.{streams.stream_of(consumer)}.{consumer.durable}")
    await operator.close()
    await nats_server.kill()
    await nats_server.start()
    bus = await NatsBus.connect(
        nats_server.url_of("gateway"), service="gateway", identity=all_services_identity()
    )
    assert await bus.refusal() is None
    assert [each.message for each in await bus.history(SCOPE, "fs")] == [message]
    await bus.drain(0.1)
    await provision(nats_server.url)


async def test_a_server_that_cannot_be_provisioned_does_not_count_as_started(
    tmp_path: Path,
) -> None:
    wanted = StreamSettings(replicas=3)
    server = NatsServer(tmp_path / "nats", tmp_path / "log", secrets.token_hex(), streams=wanted)
    with pytest.raises(PartFailedError, match=r"cannot provision PML_.*cannot have 3 replicas"):
        await start_part(server)
