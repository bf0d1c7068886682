"""What trying whether the server stores promises."""

import pytest

from libs.pml_common.tests.support.harness import BusHarness
from pml_common.contracts.catalog import SERVICES


@pytest.mark.parametrize("service", SERVICES)
async def test_a_server_that_stores_refuses_nobody(harness: BusHarness, service: str) -> None:
    bus = await harness.connect(service)
    assert await bus.refusal() is None
    assert await bus.refusal() is None
    assert await harness.dead_letters() == []


async def test_a_server_that_is_away_is_not_one_that_refuses(harness: BusHarness) -> None:
    bus = await harness.connect("gateway")
    await harness.kill(bus)
    assert await bus.refusal() is None
    assert not await bus.healthy()
