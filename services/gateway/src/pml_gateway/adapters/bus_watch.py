"""Whether the bus answers, asked at most once a second."""

import asyncio

from pml_common.bus.errors import BusUnavailable
from pml_common.bus.port import Bus

TRUSTED_S = 1.0
"""How long a good answer is believed."""


class BusWatch:
    """Knows whether NATS was there a moment ago."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._good_until = 0.0

    async def require(self) -> None:
        """Raise BusUnavailable where NATS does not answer, within a second or so."""
        now = asyncio.get_running_loop().time()
        if now < self._good_until:
            return
        if not await self._bus.healthy():
            raise BusUnavailable("NATS does not answer")
        self._good_until = now + TRUSTED_S

    async def check(self) -> str | None:
        """A health check."""
        return None if await self._bus.healthy() else "NATS does not answer"
