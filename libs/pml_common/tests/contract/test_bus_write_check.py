"""Guarantees of the write check."""

import pytest

from libs.pml_common.tests.support.harness import BusHarness
from pml_common.contracts.catalog import SERVICES


@pytest.mark.parametrize("service", SERVICES)
async def test_a_healthy_server_passes_the_write_check(harness: BusHarness, service: str) -> None:
    bus = await harness.connect(service)
    assert await bus.refusal() is None
    assert await bus.refusal() is None
    assert await harness.dead_letters() == []


async def test_an_unreachable_server_is_not_a_failed_write_check(harness: BusHarness) -> None:
    bus = await harness.connect("gateway")
    await harness.kill(bus)
    assert await bus.refusal() is None
    assert not await bus.healthy()
