"""Publishes the tools of MCP servers each time a server lists them."""

import asyncio
import logging
from collections.abc import Callable, Collection
from datetime import datetime
from itertools import chain, repeat
from uuid import uuid4

from pml_common.bus.errors import BusError
from pml_common.bus.port import Bus
from pml_common.contracts import catalog
from pml_common.contracts.gateway import ToolsListed
from pml_common.contracts.registry import ListTools
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import QuarantinedTool, ToolDefinition

log = logging.getLogger(__name__)

_ASK_AGAIN_S = 2.0

_LISTED_WITHIN_S = 10.0
_PAUSES_S = (0.01, 0.02, 0.05, 0.1, 0.2)


class ToolAnnouncer:
    """Publishes a server's whole list as a new event, even if it equals an earlier one, with its
    tools in quarantine beside it."""

    def __init__(
        self,
        bus: Bus,
        scope: Scope,
        now: Callable[[], datetime],
        quarantined: Callable[[str], tuple[QuarantinedTool, ...]],
    ) -> None:
        self._bus = bus
        self._scope = scope
        self._now = now
        self._quarantined = quarantined

    async def announce(self, server: str, tools: tuple[ToolDefinition, ...]) -> None:
        """Publish a list, and wait for a bounded time until the tool catalog has its tools. Raises
        BusUnavailable: the server pool retries."""
        await self.publish_list(server, tools)
        if tools:
            await self._until_listed(server, tools)

    async def publish_list(self, server: str, tools: tuple[ToolDefinition, ...]) -> None:
        """Publish a list. Raises BusUnavailable."""
        listed = ToolsListed(
            scope=self._scope,
            event_id=uuid4(),
            server=server,
            tools=tools,
            listed_at=self._now(),
            quarantined=self._quarantined(server),
        )
        await self._bus.publish(listed)

    async def retire_others(self, configured: Collection[str]) -> None:
        """Publish empty lists for servers that the tool catalog still has, but that are no longer
        configured; retries until the registry responds."""
        while True:
            try:
                found = await self._bus.request(catalog.LIST_TOOLS, ListTools(scope=self._scope))
                listed = {tool.server for tool in (*found.tools, *found.quarantined)}
                for server in listed - set(configured):
                    log.info("MCP server %s is no longer configured", server)
                    await self.publish_list(server, ())
            except BusError as error:
                log.info("the tool catalog could not be read yet: %s", error)
                await asyncio.sleep(_ASK_AGAIN_S)
            else:
                return

    async def _until_listed(self, server: str, tools: tuple[ToolDefinition, ...]) -> None:
        wanted = {(tool.tool_id, tool.definition_hash) for tool in tools}
        query, why = ListTools(scope=self._scope, server=server), "it lists other tools"
        try:
            async with asyncio.timeout(_LISTED_WITHIN_S):
                for pause_s in chain(_PAUSES_S, repeat(_PAUSES_S[-1])):
                    try:
                        found = await self._bus.request(catalog.LIST_TOOLS, query)
                    except BusError as error:
                        why = str(error)
                    else:
                        if {(tool.tool_id, tool.definition_hash) for tool in found.tools} == wanted:
                            return
                    await asyncio.sleep(pause_s)
        except TimeoutError:
            log.warning("the tool catalog does not have the tools of %s: %s", server, why)
