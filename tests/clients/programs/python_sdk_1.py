"""The official Python SDK 1.x."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

from common import Connection, go
from mcp import ClientSession, types
from mcp.client.streamable_http import streamable_http_client


class SdkClient(Connection):
    def __init__(self, session: ClientSession) -> None:
        self._session = session

    async def names(self) -> list[str]:
        page = await self._session.list_tools()
        names = [tool.name for tool in page.tools]
        while page.nextCursor is not None:
            page = await self._session.list_tools(cursor=page.nextCursor)
            names += [tool.name for tool in page.tools]
        return names

    async def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        number = self._session._request_id
        try:
            return (await self._session.call_tool(tool, arguments)).structuredContent or {}
        except asyncio.CancelledError:
            # 1.x leaves it to the application to tell the server.
            params = types.CancelledNotificationParams(requestId=number)
            cancelled = types.CancelledNotification(params=params)
            await self._session.send_notification(types.ClientNotification(cancelled))
            raise


@asynccontextmanager
async def connect(
    url: str, approves: bool, changed: Callable[[], None]
) -> AsyncGenerator[SdkClient]:
    async def approve(context: Any, params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={"decision": "approve"})

    async def hear(message: Any) -> None:
        root = getattr(message, "root", None)
        if isinstance(root, types.ToolListChangedNotification):
            changed()

    async with (
        streamable_http_client(url) as streams,
        ClientSession(
            streams[0],
            streams[1],
            elicitation_callback=approve if approves else None,
            message_handler=hear,
        ) as session,
    ):
        await session.initialize()
        yield SdkClient(session)


asyncio.run(go(connect))
