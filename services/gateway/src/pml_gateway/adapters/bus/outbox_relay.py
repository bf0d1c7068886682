"""Publishes the outbox: at once by the process that stored a message, later by the sweeper."""

import asyncio
import logging
from collections.abc import Sequence
from uuid import UUID

from opentelemetry import context, propagate
from typing_extensions import override

from pml_common.bus.errors import BusError, Fenced
from pml_common.bus.port import Bus
from pml_common.storage.errors import StorageUnavailable
from pml_gateway.ports import Outbox, Outgoing, Relay

log = logging.getLogger(__name__)

_MOST_AT_ONCE = 100

GATHER_S = 0.2
"""Time over which published rows are collected for deletion: far less than the sweeper's."""


class OutboxRelay(Relay):
    """Deletes published rows in batches, off the request path."""

    def __init__(self, outbox: Outbox, bus: Bus, *, gather_s: float = GATHER_S) -> None:
        self._outbox = outbox
        self._bus = bus
        self._gather_s = gather_s
        self._published: list[UUID] = []
        self._has_published = asyncio.Event()

    @override
    async def publish(self, outgoing: Sequence[Outgoing]) -> None:
        for item in outgoing:
            try:
                await self._publish(item)
            except Fenced:  # it was published before, by this process or another
                self._drop_later(item)
            except BusError as error:
                log.warning("%s stays in the outbox: %s", type(item.message).__name__, error)
            except Exception:  # a message that cannot be published must not block the others
                log.exception("%s stays in the outbox", type(item.message).__name__)

    async def sweep(self) -> None:
        """Publish overdue messages. Raises StorageUnavailable."""
        if not await self._bus.healthy():
            return  # a claim would only delay the messages once NATS is back
        while claimed := await self._outbox.claim(_MOST_AT_ONCE):
            await self.publish(claimed)
            if len(claimed) < _MOST_AT_ONCE:
                return

    async def drop_published(self) -> None:
        """Delete published rows until cancelled."""
        while True:
            await self._has_published.wait()
            await asyncio.sleep(self._gather_s)
            self._has_published.clear()
            done, self._published = self._published, []
            try:
                await self._outbox.drop(done)
            except StorageUnavailable as outage:
                log.warning(
                    "published rows are not deleted, so they are published again: %s", outage
                )
            except Exception:  # without deletions, every later message is published for ever
                log.exception("published rows are not deleted, so they are published again")

    async def _publish(self, item: Outgoing) -> None:
        if item.traceparent is None:
            await self._bus.publish(item.message)
        else:
            token = context.attach(propagate.extract({"traceparent": item.traceparent}))
            try:
                await self._bus.publish(item.message)
            finally:
                context.detach(token)
        self._drop_later(item)

    def _drop_later(self, item: Outgoing) -> None:
        self._published.append(item.message.message_id)
        self._has_published.set()
