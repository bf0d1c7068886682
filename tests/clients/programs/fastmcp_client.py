"""fastmcp's client, by default or, with `--legacy`, in the protocol of 2025-11-25."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

from common import Connection, go
from fastmcp import Client

LEGACY = "--legacy" in sys.argv
DEAF = 'it does not subscribe to changes in 2026-07-28; with `mode="legacy"` it hears of them'


class FastMcpClient(Connection):
    def __init__(self, client: Client[Any]) -> None:
        self._client = client

    async def names(self) -> list[str]:
        return [tool.name for tool in await self._client.list_tools()]

    async def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        result = await self._client.call_tool(tool, arguments, raise_on_error=False)
        return result.structured_content or {}


@asynccontextmanager
async def connect(
    url: str, approves: bool, changed: Callable[[], None]
) -> AsyncGenerator[FastMcpClient]:
    async def approve(message: str, response_type: Any, params: Any, context: Any) -> Any:
        return {"decision": "approve"}

    async def hear(message: Any) -> None:
        if "ToolListChanged" in type(getattr(message, "root", message)).__name__:
            changed()

    more: dict[str, Any] = {"elicitation_handler": approve} if approves else {}
    more |= {"mode": "legacy"} if LEGACY else {}
    async with Client(url, message_handler=hear, **more) as client:
        yield FastMcpClient(client)


asyncio.run(go(connect, **({} if LEGACY else {"told": DEAF})))
