"""Telling the bus which tools there are, each time a server lists them."""

import asyncio
import logging
from collections.abc import Callable, Collection
from datetime import datetime
from uuid import uuid4

from pml_common.bus.errors import BusError
from pml_common.bus.port import Bus
from pml_common.contracts import catalog
from pml_common.contracts.gateway import ToolsListed
from pml_common.contracts.registry import ListTools
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import ToolDefinition

log = logging.getLogger(__name__)

_ASK_AGAIN_S = 2.0


class ToolAnnouncer:
    """States a server's whole list, as a fact of its own even if it equals an earlier one."""

    def __init__(self, bus: Bus, scope: Scope, now: Callable[[], datetime]) -> None:
        self._bus = bus
        self._scope = scope
        self._now = now

    async def announce(self, server: str, tools: tuple[ToolDefinition, ...]) -> None:
        """State a list. Raises BusUnavailable: whoever lists tells it again."""
        listed = ToolsListed(
            scope=self._scope, event_id=uuid4(), server=server, tools=tools, listed_at=self._now()
        )
        await self._bus.publish(listed)

    async def retire_others(self, configured: Collection[str]) -> None:
        """State that servers which the catalogue still knows, but nobody configures any more, have
        no tools; waits for the registry as long as that takes."""
        while True:
            try:
                found = await self._bus.ask(catalog.LIST_TOOLS, ListTools(scope=self._scope))
                for server in {tool.server for tool in found.tools} - set(configured):
                    log.info("MCP server %s is no longer configured", server)
                    await self.announce(server, ())
            except BusError as error:
                log.info("the catalogue is not looked through yet: %s", error)
                await asyncio.sleep(_ASK_AGAIN_S)
            else:
                return
