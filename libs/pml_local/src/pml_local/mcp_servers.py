"""The MCP servers of a running gateway, as it tells of them."""

import asyncio
from typing import Literal

from pydantic import BaseModel, ValidationError

from pml_local.services import PROBE_SECONDS, get


class KnownServer(BaseModel):
    """How a gateway's connection to one MCP server stands."""

    name: str
    state: Literal["connecting", "ready", "failed"]
    error: str | None = None
    announced: bool = True

    @property
    def awaited(self) -> bool:
        """Whether its tools may still come."""
        return self.state != "failed" and not self.announced

    @property
    def trouble(self) -> str:
        """What keeps its tools from being used; nothing where they can be."""
        if self.state == "ready" and self.announced:
            return ""
        state = "failed" if self.state == "failed" else "is still connecting"
        return f"{state}: {self.error}" if self.error else state


class _Listed(BaseModel):
    servers: tuple[KnownServer, ...]


async def mcp_servers(port: int) -> dict[str, KnownServer]:
    """The servers of the gateway on a port; none where it does not tell."""
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            answer = await get(port, "/api/servers")
        listed = _Listed.model_validate_json(answer.partition("\r\n\r\n")[2])
    except (OSError, TimeoutError, ValidationError):
        return {}
    return {server.name: server for server in listed.servers}
