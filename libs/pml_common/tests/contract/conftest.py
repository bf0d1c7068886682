"""One suite for two buses: in memory always, on a real server in integration tests."""

from collections.abc import AsyncIterator

import pytest

from libs.pml_common.tests.support.harness import BusHarness, MemoryBusHarness, NatsBusHarness


@pytest.fixture(params=["memory", pytest.param("nats", marks=pytest.mark.integration)])
def empty_world(request: pytest.FixtureRequest) -> BusHarness:
    """Create a harness with an empty server."""
    if request.param == "memory":
        return MemoryBusHarness()
    return NatsBusHarness(request.getfixturevalue("nats_url"))


@pytest.fixture
async def harness(empty_world: BusHarness) -> AsyncIterator[BusHarness]:
    """A harness with an empty server."""
    yield empty_world
    await empty_world.close()
