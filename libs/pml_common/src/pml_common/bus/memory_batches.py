"""Batches of the in-memory bus, gathered from single deliveries."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from pml_common.bus.batch_delivery import Delivery
from pml_common.bus.clock import Clock
from pml_common.bus.codec import Envelope
from pml_common.bus.delivery import Disposition
from pml_common.contracts.catalog import Batch


class _Gathering:
    """Deliveries that will be handled together."""

    def __init__(self) -> None:
        self.deliveries: list[Delivery] = []
        self.full = asyncio.Event()
        self.handled: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class MemoryBatches:
    """Gathers the deliveries to one replica into batches."""

    def __init__(
        self,
        clock: Clock,
        batch: Batch,
        handle: Callable[[Sequence[Delivery]], Awaitable[None]],
    ) -> None:
        self._clock = clock
        self._batch = batch
        self._handle = handle
        self._gathering: _Gathering | None = None

    async def process(self, envelope: Envelope, number: int) -> Disposition:
        """Handle a delivery with those that come in the batch's time; return what becomes of it.
        The first of a batch handles all, so that it is cancelled with its replica's tasks."""
        delivery, first = Delivery(envelope, number), self._gathering is None
        gathering = self._gathering = self._gathering or _Gathering()
        gathering.deliveries.append(delivery)
        if len(gathering.deliveries) == self._batch.most:
            gathering.full.set()
            self._gathering = None
        if not first:
            await asyncio.shield(gathering.handled)
            return delivery.outcome
        try:
            await self._gather(gathering)
            await self._handle(gathering.deliveries)
        except BaseException:
            gathering.handled.cancel()
            raise
        gathering.handled.set_result(None)
        return delivery.outcome

    async def _gather(self, gathering: _Gathering) -> None:
        timer = self._clock.call_later(self._batch.within_s, gathering.full.set)
        await gathering.full.wait()
        timer.cancel()
        if self._gathering is gathering:
            self._gathering = None
