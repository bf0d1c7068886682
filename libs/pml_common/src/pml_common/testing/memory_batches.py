"""Batches of the in-memory bus, gathered from single deliveries."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from pml_common.bus.batch_delivery import Delivery
from pml_common.bus.codec import Envelope
from pml_common.bus.delivery import Disposition


class _Gathering:
    """Deliveries that will be handled together."""

    def __init__(self) -> None:
        self.deliveries: list[Delivery] = []
        self.handled: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class MemoryBatches:
    """Gathers the deliveries to one replica that are due at once into batches of at most `most`."""

    def __init__(self, most: int, handle: Callable[[Sequence[Delivery]], Awaitable[None]]) -> None:
        self._most = most
        self._handle = handle
        self._gathering: _Gathering | None = None

    async def process(self, envelope: Envelope, number: int) -> Disposition:
        """Handle a delivery with the others that are due; return what becomes of it. The first of a
        batch handles all, so that it is cancelled with its replica's tasks."""
        delivery, first = Delivery(envelope, number), self._gathering is None
        gathering = self._gathering = self._gathering or _Gathering()
        gathering.deliveries.append(delivery)
        if len(gathering.deliveries) == self._most:
            self._gathering = None
        if not first:
            await asyncio.shield(gathering.handled)
            return delivery.outcome
        try:
            await asyncio.sleep(0)  # the other deliveries come in this turn of the event loop
            if self._gathering is gathering:
                self._gathering = None
            await self._handle(gathering.deliveries)
        except BaseException:
            gathering.handled.cancel()
            raise
        gathering.handled.set_result(None)
        return delivery.outcome
