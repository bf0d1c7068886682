"""The way from the outbox to the bus: at once by whoever stored it, later by the sweeper."""

import asyncio
import logging
from collections.abc import Sequence
from uuid import UUID

from opentelemetry import context, propagate

from pml_common.bus.errors import BusError
from pml_common.bus.port import Bus
from pml_common.storage.errors import StorageUnavailable
from pml_gateway.ports import Outbox, Outgoing

log = logging.getLogger(__name__)

_MOST_AT_ONCE = 100

GATHER_S = 0.2
"""How long published rows wait for others to be dropped with: far less than the sweeper does."""


class OutboxRelay:
    """See `ports.Relay`. Published rows are dropped together, in nobody's waiting time."""

    def __init__(self, outbox: Outbox, bus: Bus, *, gather_s: float = GATHER_S) -> None:
        self._outbox = outbox
        self._bus = bus
        self._gather_s = gather_s
        self._published: list[UUID] = []
        self._news = asyncio.Event()

    async def publish(self, outgoing: Sequence[Outgoing]) -> None:
        """See `ports.Relay`."""
        for item in outgoing:
            try:
                await self._publish(item)
            except BusError as error:
                log.warning("%s waits: %s", type(item.message).__name__, error)
            except Exception:  # one that nobody can publish must not hold up its neighbours
                log.exception("%s waits", type(item.message).__name__)

    async def sweep(self) -> None:
        """Publish what should have been published. Raises StorageUnavailable."""
        if not await self._bus.healthy():
            return  # a claim would only delay what can be published once NATS is back
        while claimed := await self._outbox.claim(_MOST_AT_ONCE):
            await self.publish(claimed)
            if len(claimed) < _MOST_AT_ONCE:
                return

    async def keep_dropping(self) -> None:
        """Drop what was published, for as long as this runs."""
        while True:
            await self._news.wait()
            await asyncio.sleep(self._gather_s)
            self._news.clear()
            done, self._published = self._published, []
            try:
                await self._outbox.drop(done)
            except StorageUnavailable as outage:
                log.warning("published once more after the outage: %s", outage)
            except Exception:  # who stops dropping has all that comes later published for ever
                log.exception("published once more")

    async def _publish(self, item: Outgoing) -> None:
        if item.traceparent is None:
            await self._bus.publish(item.message)
        else:
            token = context.attach(propagate.extract({"traceparent": item.traceparent}))
            try:
                await self._bus.publish(item.message)
            finally:
                context.detach(token)
        self._published.append(item.message.message_id)
        self._news.set()
