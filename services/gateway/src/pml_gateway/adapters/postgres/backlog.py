"""Approvals and messages that wait in Postgres, as measurements."""

from pml_common.storage.queries import load_queries
from pml_common.storage.scoped import ScopedPools
from pml_common.telemetry import metrics
from pml_common.telemetry.instruments import Gauge

_SQL = load_queries("pml_gateway")
_approvals = Gauge(metrics.APPROVALS_WAITING)
_outbox = Gauge(metrics.OUTBOX_BACKLOG)

LOOK_EVERY_S = 10.0


async def measure_backlog(pools: ScopedPools) -> None:
    """Count the approvals and messages that wait, if somebody collects metrics. Raises
    StorageUnavailable."""
    if not _approvals.is_on:
        return
    async with pools.across() as session:
        row = await session.fetchrow(_SQL["count-backlog"])
    if row is not None:
        _approvals.set(row["approvals"])
        _outbox.set(row["messages"])
