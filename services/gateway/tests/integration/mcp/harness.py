"""Upstream MCP servers for tests, and a pool connected to them."""

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
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
COLD = (sys.executable, str(PROGRAM))
WARM_START = Path(__file__).parent / "warm_start.py"
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


@contextmanager
def warm_server(folder: Path) -> Generator[Sequence[str]]:
    """Import the test server once; yield the command that starts it as a fork."""
    at = folder / "warm"
    argv = [sys.executable, "-m", "services.gateway.tests.integration.mcp.warm_server", str(at)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield sys.executable, "-I", "-S", str(WARM_START), str(at)
        process.stdin.close()


class ServerHarness:
    """Starts the servers of one test, by a command; they share a log of their calls."""

    def __init__(self, folder: Path, command: Sequence[str] = COLD) -> None:
        self.log = folder / "calls.log"
        self.log.touch()
        self._command, *self._arguments = command

    def lines(self) -> list[str]:
        """Return the lines that the servers have logged."""
        return self.log.read_text().splitlines()

    def describe(self, text: str) -> None:
        """Let servers that start from now on describe `echo` so."""
        self.log.with_name("description").write_text(text)

    def stdio(self, *flags: str, env: Mapping[str, str] | None = None) -> StdioServer:
        """Configure a server that runs as a child process."""
        args = (*self._arguments, "--log", str(self.log), *flags)
        return StdioServer(command=self._command, args=args, env=dict(env or {}), trust="hints")

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
    ) -> AsyncGenerator[tuple[HttpServer, Callable[[], Awaitable[None]]]]:
        """Run an HTTP server until the context exits; yield it and what kills it before."""
        port = port or free_port()
        args = (*self._arguments, "--log", str(self.log), "--port", str(port), *flags)
        process = await asyncio.create_subprocess_exec(self._command, *args)

        async def kill() -> None:
            if process.returncode is None:
                process.kill()
            await process.wait()
            await eventually(lambda: not _listens(port))  # a fork outlives it for a moment

        try:
            await eventually(lambda: _listens(port))
            path = "sse" if "--sse" in flags else "mcp"
            yield HttpServer(url=f"http://127.0.0.1:{port}/{path}", trust="hints"), kill
        finally:
            await kill()


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
