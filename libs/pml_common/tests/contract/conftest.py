"""One suite for two buses: in memory always, on a real server in integration tests."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from libs.pml_common.tests.support.harness import (
    BusHarness,
    MemoryBusHarness,
    NatsBusHarness,
    SocketBusHarness,
)

OVER_NATS = ("nats", "socket")


@pytest.fixture(params=["memory", pytest.param("nats", marks=pytest.mark.integration)])
def empty_world(request: pytest.FixtureRequest) -> BusHarness:
    """Create a harness with an empty server."""
    if request.param == "memory":
        return MemoryBusHarness()
    return NatsBusHarness(request.getfixturevalue("nats_url"))


@pytest.fixture(
    params=["memory", *(pytest.param(kind, marks=pytest.mark.integration) for kind in OVER_NATS)]
)
def querying_world(request: pytest.FixtureRequest, tmp_path: Path) -> BusHarness:
    """Create a harness with an empty server, for each way that queries go."""
    if request.param == "memory":
        return MemoryBusHarness()
    url: str = request.getfixturevalue("nats_url")
    return NatsBusHarness(url) if request.param == "nats" else SocketBusHarness(url, tmp_path / "s")


@pytest.fixture
async def querying(querying_world: BusHarness) -> AsyncIterator[BusHarness]:
    """A harness for queries, which also go over sockets."""
    yield querying_world
    await querying_world.close()


@pytest.fixture
async def harness(empty_world: BusHarness) -> AsyncIterator[BusHarness]:
    """A harness with an empty server."""
    yield empty_world
    await empty_world.close()
