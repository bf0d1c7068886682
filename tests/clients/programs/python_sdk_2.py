"""The official Python SDK 2.x, in its newest protocol, or with `--legacy` as an older client."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from common import Connection, go
from mcp import Client
from mcp_types import ElicitResult, ToolListChangedNotification

LEGACY = "--legacy" in sys.argv


class SdkClient(Connection):
    def __init__(self, client: Client) -> None:
        self._client = client

    async def names(self) -> list[str]:
        page = await self._client.list_tools()
        names = [tool.name for tool in page.tools]
        while page.next_cursor is not None:
            page = await self._client.list_tools(cursor=page.next_cursor)
            names += [tool.name for tool in page.tools]
        return names

    async def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return (await self._client.call_tool(tool, arguments)).structured_content or {}


@asynccontextmanager
async def connect(
    url: str, approves: bool, changed: Callable[[], None]
) -> AsyncGenerator[SdkClient]:
    async def approve(context: Any, params: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"decision": "approve"})

    async def hear(message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            changed()

    async with AsyncExitStack() as stack:
        client = Client(
            url,
            mode="legacy" if LEGACY else "auto",
            elicitation_callback=approve if approves else None,
            message_handler=hear,
        )
        await stack.enter_async_context(client)
        if not LEGACY:
            changes = await stack.enter_async_context(client.listen(tools_list_changed=True))

            async def listen() -> None:
                async for _ in changes:
                    changed()

            task = asyncio.create_task(listen())
            stack.callback(task.cancel)
        yield SdkClient(client)


asyncio.run(go(connect))
