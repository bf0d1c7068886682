"""Health of the bus: whether it answers, checked at most once a second, and stores, tried less
often."""

import asyncio

from pml_common.bus.errors import BusUnavailable
from pml_common.bus.port import Bus
from pml_common.health import detail
from pml_common.throttled_check import WRITE_EVERY_S, ThrottledCheck

TRUSTED_S = 1.0
"""Time for which a positive answer is cached."""


class BusWatch:
    """Caches whether NATS answered, and whether it stored when that was last tried: with a full
    disk it still answers."""

    def __init__(self, bus: Bus, *, try_every_s: float = WRITE_EVERY_S) -> None:
        self._bus = bus
        self._good_until = 0.0
        self._stores = ThrottledCheck(bus.refusal, try_every_s)

    async def require(self) -> None:
        """Raise BusUnavailable if NATS does not answer within about a second, or did not store when
        that was last tried; storing is not tried here."""
        if self._stores.found is not None:
            raise BusUnavailable(self._stores.found)
        now = asyncio.get_running_loop().time()
        if now < self._good_until:
            return
        if not await self._bus.healthy():
            raise BusUnavailable("NATS does not answer")
        self._good_until = now + TRUSTED_S

    async def check(self) -> str | None:
        """Return why the bus is unhealthy, a detail, or None: a health check."""
        if not await self._bus.healthy():
            return "NATS does not answer"
        return await self._stores() or detail(await self._bus.shortfall())

    async def look(self) -> None:
        """Try whether it stores, if that is due; to be called periodically."""
        await self._stores()
