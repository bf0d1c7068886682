"""langchain-mcp-adapters: tools for agents of LangChain."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

from common import Connection, go
from langchain_mcp_adapters.callbacks import Callbacks
from langchain_mcp_adapters.client import MultiServerMCPClient
from mcp.types import ElicitResult


class LangChainClient(Connection):
    def __init__(self, client: MultiServerMCPClient) -> None:
        self._client = client

    async def names(self) -> list[str]:
        return [tool.name for tool in await self._client.get_tools()]

    async def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        tools = {each.name: each for each in await self._client.get_tools()}
        content = await tools[tool].ainvoke(arguments)
        text = content if isinstance(content, str) else content[0]["text"]
        return json.loads(text)


@asynccontextmanager
async def connect(
    url: str, approves: bool, changed: Callable[[], None]
) -> AsyncGenerator[LangChainClient]:
    async def approve(context: Any, params: Any, server: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"decision": "approve"})

    servers = {"pml": {"transport": "streamable_http", "url": url}}
    callbacks = Callbacks(on_elicitation=approve) if approves else None
    yield LangChainClient(MultiServerMCPClient(servers, callbacks=callbacks))


asyncio.run(
    go(
        connect,
        told="a session lasts for one call: the tools are listed at each `get_tools`",
        cancel="the SDK 1.x below tells the server nothing when a call's task is cancelled",
    )
)
