"""State of a running gateway's MCP servers."""

import asyncio
from typing import Literal

from pydantic import BaseModel, ValidationError

from pml_local.services import PROBE_SECONDS, get


class KnownServer(BaseModel):
    """The state of a gateway's connection to one MCP server."""

    name: str
    state: Literal["connecting", "ready", "failed"]
    error: str | None = None
    announced: bool = True

    @property
    def is_pending(self) -> bool:
        """Whether its tools may still appear."""
        return self.state != "failed" and not self.announced

    @property
    def problem(self) -> str:
        """The reason why its tools cannot be used; empty when they can."""
        if self.state == "ready" and self.announced:
            return ""
        state = "failed" if self.state == "failed" else "is still connecting"
        return f"{state}: {self.error}" if self.error else state


class _Listed(BaseModel):
    servers: tuple[KnownServer, ...]


async def mcp_servers(port: int) -> dict[str, KnownServer]:
    """Servers of the gateway on a port; empty when it does not answer properly."""
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            answer = await get(port, "/api/servers")
        listed = _Listed.model_validate_json(answer.partition("\r\n\r\n")[2])
    except (OSError, TimeoutError, ValidationError):
        return {}
    return {server.name: server for server in listed.servers}
