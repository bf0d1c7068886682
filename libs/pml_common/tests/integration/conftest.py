"""A bus, and a plain nats-py connection to its server."""

from collections.abc import AsyncIterator

import pytest
from nats.aio.client import Client

from libs.pml_common.tests.support.harness import SelfProvisioningBus
from pml_common.bus.identity import all_services_identity
from pml_common.bus.nats_bus import NatsBus


@pytest.fixture
async def bus(nats_url: str) -> AsyncIterator[NatsBus]:
    bus = await SelfProvisioningBus.connect(
        nats_url, service="registry", identity=all_services_identity(), instance="r1"
    )
    yield bus
    await bus.drain(0.1)


@pytest.fixture
async def client(nats_url: str) -> AsyncIterator[Client]:
    """A plain connection to the bus's server."""
    client = Client()
    await client.connect(nats_url)
    yield client
    await client.close()
