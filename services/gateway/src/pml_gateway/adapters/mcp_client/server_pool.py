"""The MCP client side: one connection to each configured server, shared by all calls (F7)."""

import asyncio
import logging
from collections.abc import Mapping
from types import MappingProxyType

from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_gateway.adapters.mcp_client.connection import Limits
from pml_gateway.adapters.mcp_client.upstream_server import McpServer, OnTools
from pml_gateway.domain.api.mcp_tools import did_you_mean
from pml_gateway.domain.servers.server_config import ServerConfig
from pml_gateway.domain.tool_calls.repeatable import NotSent
from pml_gateway.ports import ServerStatus

__all__ = ["Limits", "McpServers", "OnTools"]

log = logging.getLogger(__name__)


async def _nobody_listens(server: str, tools: tuple[ToolDefinition, ...]) -> None:
    """Take a listing and do nothing with it."""


class McpServers:
    """`on_tools(server, tools)` is told a server's whole listing whenever it connects or changes
    it, and again until it returns without raising."""

    def __init__(
        self,
        servers: Mapping[str, ServerConfig],
        *,
        environment: Mapping[str, str] = MappingProxyType({}),
        limits: Limits | None = None,
        on_tools: OnTools = _nobody_listens,
    ) -> None:
        self._servers = {
            name: McpServer(
                name,
                server,
                environment=environment,
                limits=limits or Limits(),
                on_tools=on_tools,
            )
            for name, server in servers.items()
        }
        for name, server in servers.items():
            for field in server.ignored_fields:
                log.warning("mcpServers.%s.%s has no effect here", name, field)

    async def start(self) -> None:
        """Begin to connect to all of them, in the background: none delays another, or us."""
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
        """Disconnect from all; no process of theirs is left."""
        await asyncio.gather(*(server.close() for server in self._servers.values()))

    def list_tools(self) -> dict[str, tuple[ToolDefinition, ...]]:
        """Each server's tools as it last listed them."""
        return {name: server.tools for name, server in self._servers.items()}

    def status(self) -> dict[str, ServerStatus]:
        """How each server stands now."""
        return {name: server.status for name, server in self._servers.items()}

    async def call(self, tool_id: str, args: JsonObject, timeout_s: float) -> ToolOutcome:
        """Call `server:tool`; answers within `timeout_s` and raises nothing."""
        name, _, tool = tool_id.partition(":")
        server = self._servers.get(name)
        if server is None:
            message = f"no MCP server {name!r} is configured{did_you_mean(name, self._servers)}"
            return NotSent(status="tool_error", message=message)
        return await server.call(tool, args, timeout_s)

    async def reach(self, server: str, timeout_s: float) -> None:
        """See `ports.ToolServers`."""
        if server in self._servers:
            await self._servers[server].reach(timeout_s)
