"""One suite, two buses: the twin everywhere, the real server where it may run."""

from collections.abc import AsyncIterator

import pytest

from libs.pml_common.tests.support.harness import BusHarness, MemoryBusHarness, NatsBusHarness


@pytest.fixture(params=["memory", pytest.param("nats", marks=pytest.mark.integration)])
def empty_world(request: pytest.FixtureRequest) -> BusHarness:
    """An empty server."""
    if request.param == "memory":
        return MemoryBusHarness()
    return NatsBusHarness(request.getfixturevalue("nats_url"))


@pytest.fixture
async def harness(empty_world: BusHarness) -> AsyncIterator[BusHarness]:
    """An empty server to connect replicas to."""
    yield empty_world
    await empty_world.close()
