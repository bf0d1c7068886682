"""The test server, over every transport; PML's own endpoint."""

from collections.abc import AsyncGenerator, Generator, Sequence
from pathlib import Path

import pytest

from pml_gateway.domain.servers.server_config import ServerConfig
from services.gateway.tests.integration.mcp.harness import ServerHarness, warm_server
from services.gateway.tests.integration.mcp.served_endpoint import ServedEndpoint, served


@pytest.fixture(scope="session")
def command(tmp_path_factory: pytest.TempPathFactory) -> Generator[Sequence[str]]:
    """Command that starts the test server."""
    with warm_server(tmp_path_factory.mktemp("servers")) as command:
        yield command


@pytest.fixture
def harness(tmp_path: Path, command: Sequence[str]) -> ServerHarness:
    """Starter of upstream servers."""
    return ServerHarness(tmp_path, command)


@pytest.fixture(
    params=[
        "stdio --legacy",
        "http",
        pytest.param("stdio", marks=pytest.mark.nightly),
        pytest.param("http --legacy", marks=pytest.mark.nightly),
    ]
)
async def reached(
    request: pytest.FixtureRequest, harness: ServerHarness
) -> AsyncGenerator[ServerConfig]:
    """A server per transport and generation of the protocol."""
    transport, *flags = str(request.param).split()
    if transport == "stdio":
        yield harness.stdio(*flags)
        return
    async with harness.http(*flags) as (server, _):
        yield server


@pytest.fixture
async def mcp() -> AsyncGenerator[ServedEndpoint]:
    """PML's own endpoint, served."""
    async with served(max_body_bytes=100_000) as mcp:
        yield mcp


@pytest.fixture(params=["auto", pytest.param("legacy", marks=pytest.mark.nightly)])
def mode(request: pytest.FixtureRequest) -> str:
    """The way in which the official client connects."""
    return str(request.param)
