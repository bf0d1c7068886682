"""The whole embedded stack, once per session, with its MCP servers and a collector."""

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
from pydantic import JsonValue

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_local.composition import StackOptions
from pml_local.ports import free_port
from pml_local.stack import embedded_stack
from tests.conformance.suite import conformance_servers
from tests.e2e.agents import Mode
from tests.e2e.collector import collector
from tests.e2e.harness import INPUT, StackHarness, tools_listed
from tests.e2e.odd_server import odd_server

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
async def harness(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[StackHarness]:
    """A stack with servers of each kind, of the conformance suite's one: each start of a gateway
    starts them all."""
    async with _running(tmp_path_factory, conformance_servers(["test"])) as running:
        yield running


@pytest.fixture(scope="session")
async def conforming(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[StackHarness]:
    """A stack with all servers of the conformance suite."""
    async with _running(tmp_path_factory, conformance_servers()) as running:
        yield running


@asynccontextmanager
async def _running(
    tmp_path_factory: pytest.TempPathFactory, more: dict[str, JsonValue]
) -> AsyncGenerator[StackHarness]:
    home = tmp_path_factory.mktemp("pml")
    folder = tmp_path_factory.mktemp("counted")
    servers: dict[str, JsonValue] = {
        "counting": {
            "command": sys.executable,
            "args": [str(HERE / "counting_server.py"), str(folder)],
            "trust": "hints",
        },
        "changing": {
            "command": sys.executable,
            "args": [str(HERE / "changing_server.py"), str(folder)],
            "trust": "hints",
        },
    }
    servers |= {"odd": odd_server(folder), "gone": {"command": "no-such-program"}}
    servers |= more
    config = home / "servers.json"
    config.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    async with collector() as telemetry:
        options = StackOptions(
            home=home / "data",
            gateway_port=free_port(),
            mcp_servers=config,
            env={
                "OTEL_EXPORTER_OTLP_ENDPOINT": telemetry.endpoint,
                "OTEL_BSP_SCHEDULE_DELAY": "200",
                "OTEL_METRIC_EXPORT_INTERVAL": "1000",
                "PML_GATEWAY_STUB_TOOLS": "true",
                "PML_INPUT_SECRET": INPUT,
            },
        )
        async with (
            embedded_stack(options) as stack,
            httpx2.AsyncClient(base_url=stack.url, timeout=PATIENCE_S) as http,
        ):
            await eventually(lambda: tools_listed(http))
            yield StackHarness(stack, http, folder, telemetry)


@pytest.fixture(params=["auto", pytest.param("legacy", marks=pytest.mark.nightly)])
def mode(request: pytest.FixtureRequest) -> Mode:
    """The generation of the protocol."""
    return request.param
