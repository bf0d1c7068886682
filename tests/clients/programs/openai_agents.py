"""The OpenAI Agents SDK's MCP servers, without a model."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

from agents.mcp import MCPServerStreamableHttp
from common import Connection, go


class AgentsClient(Connection):
    def __init__(self, server: MCPServerStreamableHttp) -> None:
        self._server = server

    async def names(self) -> list[str]:
        return [tool.name for tool in await self._server.list_tools()]

    async def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        result = await self._server.call_tool(tool, arguments)
        return json.loads(result.content[0].text)


@asynccontextmanager
async def connect(
    url: str, approves: bool, changed: Callable[[], None]
) -> AsyncGenerator[AgentsClient]:
    params = {"url": url, "timeout": 30.0}
    server = MCPServerStreamableHttp(params=params, client_session_timeout_seconds=60.0)
    async with server:
        yield AgentsClient(server)


asyncio.run(
    go(
        connect,
        form="the SDK declares no elicitation: `next` leads on",
        told="it does not subscribe to changes in 2026-07-28; it lists the tools at each run",
    )
)
