"""A machine whose registry can be reached over NATS, and over a socket once it serves there."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from libs.pml_common.tests.support.sockets import FAR, NEAR, Machine, Registry
from pml_common.contracts import catalog


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Machine]:
    """A machine whose registry can be reached over NATS."""
    machine = Machine(tmp_path / "sockets")
    await machine.far.serve(catalog.LIST_TOOLS, Registry(FAR))
    yield machine
    await machine.close()


@pytest.fixture
def near() -> Registry:
    return Registry(NEAR)
