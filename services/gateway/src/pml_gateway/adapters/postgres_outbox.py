"""The outbox in Postgres."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from pml_common.storage.pool import Pool, connection
from pml_common.storage.queries import load_queries
from pml_gateway.adapters.postgres_rows import message_of
from pml_gateway.ports import Outgoing

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
        async with connection(self._pool) as held:
            rows = await held.fetch(_SQL["claim-outgoing"], limit, self._lease)
        return [Outgoing(message_of(row), row["traceparent"]) for row in rows]

    async def drop(self, message_ids: Sequence[UUID]) -> None:
        """See `ports.Outbox`."""
        async with connection(self._pool) as held:
            await held.execute(_SQL["drop-outgoing"], list(message_ids))
