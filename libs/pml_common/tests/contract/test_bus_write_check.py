"""What trying whether the server stores promises."""

import pytest

from libs.pml_common.tests.support.harness import BusHarness
from pml_common.contracts.catalog import SERVICES


@pytest.mark.parametrize("service", SERVICES)
async def test_a_server_that_stores_refuses_nobody(world: BusHarness, service: str) -> None:
    bus = await world.connect(service)
    assert await bus.refusal() is None
    assert await bus.refusal() is None
    assert await world.dead_letters() == []


async def test_a_server_that_is_away_is_not_one_that_refuses(world: BusHarness) -> None:
    bus = await world.connect("gateway")
    await world.kill(bus)
    assert await bus.refusal() is None
    assert not await bus.healthy()
