"""Guarantees of signals: messages that are not stored."""

from uuid import uuid4

import pytest

from libs.pml_common.tests.support.harness import BusHarness
from libs.pml_local.tests.support.harness import eventually
from pml_common.bus.errors import BusUnavailable
from pml_common.contracts import catalog
from pml_common.contracts.client_sessions import ClientMessage
from pml_common.contracts.scope import Scope

SCOPE = Scope(org="acme", project="webapp")


def said(session: str, number: int = 1) -> ClientMessage:
    return ClientMessage(
        scope=SCOPE, signal_id=uuid4(), session=session, message={"id": "pml-1", "result": number}
    )


async def test_every_replica_that_wants_it_hears_a_signal_and_none_is_stored(
    harness: BusHarness,
) -> None:
    replicas = [await harness.connect("gateway") for _ in range(2)]
    heard: list[list[ClientMessage]] = [[], []]
    missed = said("ab12")
    await replicas[0].publish(missed)
    for bus, into in zip(replicas, heard, strict=True):

        async def hear(signal: ClientMessage, into: list[ClientMessage] = into) -> None:
            into.append(signal)

        await bus.listen(catalog.CLIENT_MESSAGE, hear, wants=lambda _, entity: entity == "ab12")
    signals = [said("ab12", number) for number in (1, 2, 3)]
    await replicas[0].publish(said("other"))
    for signal in signals:
        assert await replicas[0].publish(signal) == 0
    await eventually(lambda: heard == [signals, signals])
    assert await replicas[1].history(SCOPE, "ab12") == []


async def test_without_a_server_a_signal_cannot_be_sent(harness: BusHarness) -> None:
    bus = await harness.connect("gateway")
    await harness.kill(bus)
    with pytest.raises(BusUnavailable):
        await bus.publish(said("ab12"))
