"""Our small MCP server in every way it can be reached."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from pml_gateway.domain.servers.server_config import ServerConfig
from services.gateway.tests.integration.mcp.harness import ServerWorld


@pytest.fixture
def world(tmp_path: Path) -> ServerWorld:
    """A place for servers."""
    return ServerWorld(tmp_path)


@pytest.fixture(params=["stdio", "stdio --legacy", "http", "http --legacy"])
async def reached(
    request: pytest.FixtureRequest, world: ServerWorld
) -> AsyncGenerator[ServerConfig]:
    """A server over each transport, in each generation of the protocol."""
    transport, *flags = str(request.param).split()
    if transport == "stdio":
        yield world.stdio(*flags)
        return
    async with world.http(*flags) as (server, _):
        yield server
