"""Fixtures shared by the suites of the REST interface."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from services.gateway.tests.support.cached import learn
from services.gateway.tests.support.harness import World, Worlds


@pytest.fixture
async def w(tmp_path: Path, world: Worlds) -> AsyncGenerator[World]:
    """A gateway that knows `fs:look` and whose policy file can be written."""
    async with world(gateway_policy_file=tmp_path / "policy.json") as one:
        learn(one)
        yield one
