"""Announcement of one server's listings."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from pml_common.contracts.tool import ToolDefinition
from pml_gateway.adapters.mcp_client.connection import Limits
from pml_gateway.domain.servers.offers import Offers

log = logging.getLogger(__name__)

OnTools = Callable[[str, tuple[ToolDefinition, ...]], Awaitable[None]]

OnOffers = Callable[[Offers, Offers], Awaitable[None]]
"""Gets what a server offered and offers now, where that is something else."""


class Announcements:
    """Passes each new listing of a server on; after a failure, retries with the newest."""

    def __init__(self, name: str, on_tools: OnTools, limits: Limits) -> None:
        self.tools: tuple[ToolDefinition, ...] = ()
        self.made = False
        self._name = name
        self._on_tools = on_tools
        self._limits = limits
        self._changed = asyncio.Event()

    def set(self, tools: tuple[ToolDefinition, ...]) -> None:
        """Announce these tools."""
        self.tools = tools
        self._changed.set()

    async def run(self) -> None:
        """Announce what is set, until cancelled."""
        failures = 0
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self._on_tools(self._name, self.tools)
                self.made = True
                failures = 0
            except Exception:
                log.exception("%s: its tools could not be announced; trying again", self._name)
                failures += 1
                self._changed.set()
                await asyncio.sleep(self._limits.retry_delay_s(failures))


class OfferAnnouncements:
    """Passes on what a server offers beside tools, where that changed."""

    def __init__(self, on_offers: OnOffers) -> None:
        self.offers = Offers()
        self._on_offers = on_offers
        self._changed = asyncio.Event()

    def set(self, offers: Offers) -> None:
        """Announce these, if they are others."""
        self.offers = offers
        self._changed.set()

    async def run(self) -> None:
        """Announce what is set, until cancelled."""
        announced = Offers()
        while True:
            await self._changed.wait()
            self._changed.clear()
            before, announced = announced, self.offers
            if announced != before:
                await self._on_offers(before, announced)
