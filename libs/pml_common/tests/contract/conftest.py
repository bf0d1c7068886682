"""One suite, two buses: the twin everywhere, the real server where it may run."""

from collections.abc import AsyncIterator

import pytest

from pml_common.bus.testing import BusWorld, MemoryWorld, NatsWorld


@pytest.fixture(params=["memory", pytest.param("nats", marks=pytest.mark.integration)])
def empty_world(request: pytest.FixtureRequest) -> BusWorld:
    """An empty server."""
    if request.param == "memory":
        return MemoryWorld()
    return NatsWorld(request.getfixturevalue("nats_url"))


@pytest.fixture
async def world(empty_world: BusWorld) -> AsyncIterator[BusWorld]:
    """An empty server to connect replicas to."""
    yield empty_world
    await empty_world.close()
