"""The real bus alone: unit tests have what does not depend on it on the fake, too."""

import pytest

from libs.pml_common.tests.support.harness import BusHarness, NatsBusHarness


@pytest.fixture
def empty_world(nats_url: str) -> BusHarness:
    """An empty server."""
    return NatsBusHarness(nats_url)
