"""The pool of upstream MCP servers: one connection to each configured one, for all calls."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType

from typing_extensions import override

from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_common.service import CannotStart
from pml_gateway.adapters.mcp_client.connection import Admit, Limits
from pml_gateway.adapters.mcp_client.upstream_server import OnTools, UpstreamServer
from pml_gateway.domain.api.mcp_tools import did_you_mean
from pml_gateway.domain.servers.server_config import ServerConfig, ServersInvalid, parse_servers
from pml_gateway.domain.tool_calls.repeatable import NotSent
from pml_gateway.ports import CallOrigin, ServerStatus, ToolServers

__all__ = ["Admit", "Limits", "OnTools", "ServerPool", "configured_servers"]

log = logging.getLogger(__name__)


async def _ignore_tools(server: str, tools: tuple[ToolDefinition, ...]) -> None:
    """Ignore a listing."""


async def _admit_all(server: str, tools: tuple[ToolDefinition, ...]) -> tuple[ToolDefinition, ...]:
    """Admit every tool."""
    return tools


class ServerPool(ToolServers):
    """`admit(server, tools)` returns the tools of a server's whole listing that may be offered.
    `on_tools(server, tools)` gets these whenever the server connects or changes them, and again
    until it returns without raising."""

    def __init__(
        self,
        servers: Mapping[str, ServerConfig],
        *,
        environment: Mapping[str, str] = MappingProxyType({}),
        limits: Limits | None = None,
        on_tools: OnTools = _ignore_tools,
        admit: Admit = _admit_all,
    ) -> None:
        self._servers = {
            name: UpstreamServer(
                name,
                server,
                environment=environment,
                limits=limits or Limits(),
                on_tools=on_tools,
                admit=admit,
            )
            for name, server in servers.items()
        }
        for name, server in servers.items():
            for field in server.ignored_fields:
                log.warning("mcpServers.%s.%s has no effect here", name, field)

    async def start(self) -> None:
        """Begin to connect to all of them, in the background: none delays another, or the
        gateway."""
        for server in self._servers.values():
            server.start()

    async def settled(self, timeout_s: float) -> bool:
        """Wait until each server is ready or has failed; False if some still connect by then."""
        waits = [asyncio.create_task(server.settled()) for server in self._servers.values()]
        if not waits:
            return True
        _, late = await asyncio.wait(waits, timeout=timeout_s)
        for wait in late:
            wait.cancel()
        return not late

    async def close(self) -> None:
        """Disconnect from all; their processes have ended when this returns."""
        await asyncio.gather(*(server.close() for server in self._servers.values()))

    async def review(self, server: str) -> None:
        """Ask again which tools of a server may be offered."""
        if server in self._servers:
            await self._servers[server].review()

    @override
    def list_tools(self) -> dict[str, tuple[ToolDefinition, ...]]:
        return {name: server.tools for name, server in self._servers.items()}

    @override
    def status(self) -> dict[str, ServerStatus]:
        return {name: server.status for name, server in self._servers.items()}

    @override
    async def call(
        self, tool_id: str, args: JsonObject, timeout_s: float, origin: CallOrigin | None = None
    ) -> ToolOutcome:
        """Call a tool; its server does not hear whose call it is."""
        name, _, tool = tool_id.partition(":")
        server = self._servers.get(name)
        if server is None:
            message = f"no MCP server {name!r} is configured{did_you_mean(name, self._servers)}"
            return NotSent(status="tool_error", message=message)
        return await server.call(tool, args, timeout_s)

    @override
    async def reach(self, server: str, timeout_s: float) -> None:
        if server in self._servers:
            await self._servers[server].reach(timeout_s)


@asynccontextmanager
async def configured_servers(
    file: Path | None, environment: Mapping[str, str], on_tools: OnTools, admit: Admit = _admit_all
) -> AsyncGenerator[ServerPool]:
    """The servers of an `mcpServers` file, not started yet, disconnected when the context exits;
    none without a file. Raises CannotStart that names the file and all faults."""
    try:
        configured = parse_servers(_text_of(file), environment)
    except ServersInvalid as error:
        raise CannotStart(f"{file}: {error}") from error
    servers = ServerPool(configured, environment=environment, on_tools=on_tools, admit=admit)
    try:
        yield servers
    finally:
        await servers.close()


def _text_of(file: Path | None) -> str:
    if file is not None and file.is_file():
        return file.read_text(encoding="utf-8")
    if file is not None:
        log.warning("there is no file %s, so there are no MCP servers", file)
    return '{"mcpServers": {}}'
