"""Upstream MCP servers for tests, and a pool connected to them."""

import asyncio
import json
import socket
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pydantic import JsonValue

from libs.pml_local.tests.support.harness import eventually
from pml_common.contracts.tool import ToolDefinition
from pml_gateway.adapters.mcp_client.server_pool import Limits, ServerPool
from pml_gateway.application.quarantine import Quarantine
from pml_gateway.domain.servers.server_config import HttpServer, ServerConfig, StdioServer
from pml_gateway.ports import Logins
from pml_local.ports import free_port
from services.gateway.tests.support.builders import AT, SCOPE
from services.gateway.tests.support.fake_stores import FakeAcceptedTools

PROGRAM = Path(__file__).parent / "server_program.py"
RAW_PROGRAM = Path(__file__).parent / "raw_program.py"
QUICK = Limits(connect_timeout_s=20.0, retry_delays_s=(0.05, 0.2), stable_s=0.0)

EACH_GENERATION = pytest.mark.parametrize(
    "flags",
    [
        pytest.param((), id="modern"),
        pytest.param(("--legacy",), id="legacy", marks=pytest.mark.nightly),
    ],
)
"""Flags of a server of each generation of the protocol."""


class ServerHarness:
    """Starts the servers of one test; they share a log of their calls."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "calls.log"
        self.log.touch()

    def lines(self) -> list[str]:
        """Return the lines that the servers have logged."""
        return self.log.read_text().splitlines()

    def describe(self, text: str) -> None:
        """Let servers that start from now on describe `echo` so."""
        self.log.with_name("description").write_text(text)

    def stdio(self, *flags: str, env: Mapping[str, str] | None = None) -> StdioServer:
        """Configure a server that runs as a child process."""
        args = (str(PROGRAM), "--log", str(self.log), *flags)
        return StdioServer(command=sys.executable, args=args, env=dict(env or {}), trust="hints")

    def raw(
        self,
        tools: Sequence[JsonValue],
        lines: Mapping[str, Sequence[str]] | None = None,
        version: str = "2025-11-25",
    ) -> StdioServer:
        """Configure a server that lists these `tools`, and answers calls with these `lines`."""
        told = self.log.with_name("raw.json")
        told.write_text(json.dumps({"version": version, "tools": tools, "lines": lines or {}}))
        return StdioServer(command=sys.executable, args=(str(RAW_PROGRAM), str(told)))

    @asynccontextmanager
    async def http(
        self, *flags: str, port: int | None = None
    ) -> AsyncGenerator[tuple[HttpServer, asyncio.subprocess.Process]]:
        """Run an HTTP server until the context exits; yield it and its process."""
        port = port or free_port()
        args = (str(PROGRAM), "--log", str(self.log), "--port", str(port), *flags)
        process = await asyncio.create_subprocess_exec(sys.executable, *args)
        try:
            await eventually(lambda: _listens(port))
            path = "sse" if "--sse" in flags else "mcp"
            yield HttpServer(url=f"http://127.0.0.1:{port}/{path}", trust="hints"), process
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


@dataclass
class Listener:
    """Records listings; the first `failures` calls fail."""

    failures: int = 0
    listings: list[tuple[str, set[str]]] = field(default_factory=list[tuple[str, set[str]]])

    async def __call__(self, server: str, tools: tuple[ToolDefinition, ...]) -> None:
        if self.failures:
            self.failures -= 1
            raise OSError("the bus is away")
        self.listings.append((server, {tool.name for tool in tools}))


@asynccontextmanager
async def connected(
    servers: Mapping[str, ServerConfig],
    limits: Limits = QUICK,
    environment: Mapping[str, str] | None = None,
    on_tools: Listener | None = None,
    quarantine: Quarantine | None = None,
    logins: Logins | None = None,
) -> AsyncGenerator[ServerPool]:
    """Connect to servers; all of them are ready or failed on entry."""
    admit = (quarantine or Quarantine(FakeAcceptedTools(), SCOPE, lambda: AT)).admit
    pool = ServerPool(
        servers,
        environment=environment or {},
        limits=limits,
        on_tools=on_tools or Listener(),
        admit=admit,
        logins=logins,
    )
    await pool.start()
    try:
        assert await pool.settled(limits.connect_timeout_s + 10.0)
        yield pool
    finally:
        await pool.close()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
