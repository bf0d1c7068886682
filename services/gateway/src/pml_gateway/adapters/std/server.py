"""`pml-std`, PML's standard library: tools that programs call like those of MCP servers, and that
the gateway answers itself.

To add one, write it in its module, or add a module to MODULES: its name is the server's.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from typing_extensions import override

from pml_common.bus.errors import BusUnavailable
from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_gateway.adapters.mcp_client.announcements import OnTools
from pml_gateway.adapters.std.dns import DNS
from pml_gateway.adapters.std.learn import LEARN
from pml_gateway.adapters.std.meta import META
from pml_gateway.adapters.std.tools import Backing, StdTool
from pml_gateway.domain.api.mcp_tools import did_you_mean
from pml_gateway.domain.tool_calls.repeatable import NotSent
from pml_gateway.ports import CallOrigin, ServerStatus, ToolServers

log = logging.getLogger(__name__)

MODULES: Final[Mapping[str, Sequence[StdTool[Any]]]] = {
    "dns": DNS,
    "learn": LEARN,
    "meta": META,
}
"""Tools by server; the names are reserved."""

_ANNOUNCE_AGAIN_S: Final = 1.0


class StdServers(ToolServers):
    """The servers of the standard library; always connected."""

    def __init__(self, backing: Backing, since: datetime) -> None:
        self._backing = backing
        self._since = since
        self._announced = False
        self._tools = {
            server: {tool.name: tool for tool in tools} for server, tools in MODULES.items()
        }
        self._listed = {
            server: tuple(tools[name].definition(server) for name in sorted(tools))
            for server, tools in self._tools.items()
        }

    @override
    async def call(
        self, tool_id: str, args: JsonObject, timeout_s: float, origin: CallOrigin
    ) -> ToolOutcome:
        server, _, name = tool_id.partition(":")
        tools = self._tools[server]
        tool = tools.get(name)
        if tool is None:
            message = f"{server} has no tool {name!r}{did_you_mean(name, tools)}"
            return NotSent(status="tool_error", message=message)
        try:
            async with asyncio.timeout(timeout_s):
                return await tool.call(self._backing, args, timeout_s, origin)
        except TimeoutError:
            reads = bool(tool.annotations.read_only)
            message = f"{tool_id} had no answer within {timeout_s:g} s"
            return ToolOutcome(status="timeout" if reads else "unknown", message=message)

    @override
    def list_tools(self) -> Mapping[str, tuple[ToolDefinition, ...]]:
        return self._listed

    @override
    def status(self) -> Mapping[str, ServerStatus]:
        return {
            server: ServerStatus(
                state="ready",
                error=None,
                tools=len(listed),
                since=self._since,
                announced=self._announced,
            )
            for server, listed in self._listed.items()
        }

    @override
    async def reach(self, server: str, timeout_s: float) -> None:
        """Return at once: the server is always available."""

    async def announce(self, on_tools: OnTools) -> None:
        """Pass each server's tools to `on_tools`; retries while NATS is away."""
        for server, tools in self._listed.items():
            while True:
                try:
                    await on_tools(server, tools)
                except BusUnavailable as outage:
                    log.info("the tools of %s are not announced yet: %s", server, outage)
                    await asyncio.sleep(_ANNOUNCE_AGAIN_S)
                else:
                    break
        self._announced = True
