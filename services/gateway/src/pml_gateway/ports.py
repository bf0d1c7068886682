"""What handlers need from the world outside."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.tool import JsonObject, ToolDefinition

ServerState = Literal["connecting", "ready", "failed"]


@dataclass(frozen=True)
class ServerStatus:
    """How the connection to one MCP server stands; `tools` counts the last listing."""

    state: ServerState
    error: str | None
    tools: int
    since: datetime


class ToolCaller(Protocol):
    """What makes tool calls on MCP servers."""

    async def call(self, tool_id: str, args: JsonObject, timeout_s: float) -> ToolOutcome:
        """Call `server:tool`; answers within `timeout_s` and raises nothing.

        `unknown`: the connection broke while the call ran. `tool_error`: the tool or its server
        said no, or was never reached.
        """
        ...


class ToolServers(ToolCaller, Protocol):
    """The connected MCP servers."""

    def list_tools(self) -> Mapping[str, tuple[ToolDefinition, ...]]:
        """Each server's tools as it last listed them."""
        ...

    def status(self) -> Mapping[str, ServerStatus]:
        """How each server stands now."""
        ...
