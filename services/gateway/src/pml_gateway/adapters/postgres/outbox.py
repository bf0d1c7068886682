"""The outbox in Postgres."""

import logging
from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from opentelemetry import metrics

from pml_common.storage.pool import Connection, Pool, connection
from pml_common.storage.queries import load_queries, storable
from pml_common.telemetry import vocabulary
from pml_gateway.adapters.postgres.rows import UnreadableRow, message_of
from pml_gateway.ports import Outgoing

log = logging.getLogger(__name__)
_unreadable = metrics.get_meter(__name__).create_counter(vocabulary.OUTBOX_SET_ASIDE)

_SQL = load_queries("pml_gateway")

LEASE = timedelta(seconds=15)
"""How long whoever claims a message has to publish and drop it."""


class PostgresOutbox:
    """See `ports.Outbox`."""

    def __init__(self, pool: Pool, *, lease: timedelta = LEASE) -> None:
        self._pool = pool
        self._lease = lease

    async def claim(self, limit: int) -> Sequence[Outgoing]:
        """See `ports.Outbox`."""
        outgoing = list[Outgoing]()
        async with connection(self._pool) as held:
            for row in await held.fetch(_SQL["claim-outgoing"], limit, self._lease):
                try:
                    outgoing.append(Outgoing(message_of(row), row["traceparent"]))
                except UnreadableRow as error:
                    await _set_aside(held, row["message_id"], str(error))
        return outgoing

    async def drop(self, message_ids: Sequence[UUID]) -> None:
        """See `ports.Outbox`."""
        async with connection(self._pool) as held:
            await held.execute(_SQL["drop-outgoing"], list(message_ids))


async def _set_aside(held: Connection, message_id: UUID, reason: str) -> None:
    """It would hold up all that is claimed with it, again and again."""
    await held.execute(_SQL["set-outgoing-aside"], message_id, storable(reason))
    log.error("message %s of the outbox is set aside: %s", message_id, reason)
    _unreadable.add(1)
