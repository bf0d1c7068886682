"""The outbox in Postgres."""

import logging
from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from typing_extensions import override

from pml_common.storage.pool import Connection
from pml_common.storage.queries import load_queries, storable
from pml_common.storage.scoped import ScopedPools
from pml_common.telemetry import metrics
from pml_common.telemetry.instruments import Sum
from pml_gateway.adapters.postgres.rows import UnreadableRow, message_of
from pml_gateway.ports import Outbox, Outgoing

log = logging.getLogger(__name__)
_unreadable = Sum(metrics.OUTBOX_SET_ASIDE)

_SQL = load_queries("pml_gateway")

LEASE = timedelta(seconds=15)
"""Time in which a claimed message must be published and dropped."""


class PostgresOutbox(Outbox):
    def __init__(self, pools: ScopedPools, *, lease: timedelta = LEASE) -> None:
        self._pools = pools
        self._lease = lease

    @override
    async def claim(self, limit: int) -> Sequence[Outgoing]:
        outgoing = list[Outgoing]()
        async with self._pools.across() as conn:
            for row in await conn.fetch(_SQL["claim-outgoing"], limit, self._lease):
                try:
                    outgoing.append(Outgoing(message_of(row), row["traceparent"]))
                except UnreadableRow as error:
                    await _set_aside(conn, row["message_id"], str(error))
        return outgoing

    @override
    async def drop(self, message_ids: Sequence[UUID]) -> None:
        async with self._pools.across() as conn:
            await conn.execute(_SQL["drop-outgoing"], list(message_ids))


async def _set_aside(conn: Connection, message_id: UUID, reason: str) -> None:
    """Set an unreadable message aside; otherwise it would block all that are claimed with it."""
    await conn.execute(_SQL["set-outgoing-aside"], message_id, storable(reason))
    log.error("message %s of the outbox is set aside: %s", message_id, reason)
    _unreadable.add(1)
