"""Withdrawal of the tools of servers that are no longer configured."""

import asyncio
import logging
from contextlib import suppress
from typing import Final

from pml_gateway.adapters.mcp_client.announcements import OnTools
from pml_gateway.adapters.mcp_client.connection import Admit

log = logging.getLogger(__name__)

_AGAIN_S: Final = 2.0


class Withdrawals:
    """Passes an empty listing of each removed server on, until that is taken."""

    def __init__(self, on_tools: OnTools, admit: Admit) -> None:
        self._on_tools = on_tools
        self._admit = admit
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def begin(self, server: str) -> None:
        """Withdraw a server's tools; what fails is tried again in the background."""
        await self._admit(server, ())
        if not await self._tell(server):
            self._tasks[server] = asyncio.create_task(self._retry(server))

    async def drop(self, server: str) -> None:
        """Withdraw no longer: the server is configured again."""
        task = self._tasks.pop(server, None)
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def close(self) -> None:
        """End every attempt."""
        for server in list(self._tasks):
            await self.drop(server)

    async def _tell(self, server: str) -> bool:
        try:
            await self._on_tools(server, ())
        except Exception:
            log.exception("%s: its tools could not be withdrawn; trying again", server)
            return False
        return True

    async def _retry(self, server: str) -> None:
        while True:
            await asyncio.sleep(_AGAIN_S)
            if await self._tell(server):
                return
