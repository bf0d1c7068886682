"""Errors of the storage layer, and their mapping from the driver's."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import asyncpg

from pml_common.errors import Retryable


class StorageUnavailable(Retryable):
    """Postgres does not answer, or cannot store anything now. Retry later."""


class MigrationChanged(Exception):
    """A migration was changed after it was applied; write a new one instead."""


class RolesMissing(Exception):
    """The roles of row-level security are missing, and the user may not make them; says what to
    grant."""


_GONE = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.TooManyConnectionsError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.TransactionTimeoutError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)
"""No server, or its connection is lost. The last two are the driver's own: it raises them if a
connection ended between two of its steps."""

_FULL = (
    asyncpg.InsufficientResourcesError,
    asyncpg.PostgresSystemError,
    asyncpg.ReadOnlySQLTransactionError,
)
"""A server that answers but cannot store: a full or failing disk, no memory, or a primary that
became read-only, as managed servers do when their disk is full."""

_BUGS = (
    ValueError,
    asyncpg.UnsupportedClientFeatureError,
    asyncpg.UnsupportedServerFeatureError,
    asyncpg.OutdatedSchemaCacheError,
)
"""Subclasses of the above that mean a wrong statement, argument or configuration."""

_UVLOOP_CLOSED = "the handler is closed"
"""uvloop's error for a write to a closed socket, before the driver notices."""


def outage_in(error: BaseException) -> str | None:
    """Describe a driver error that means that Postgres is unreachable or cannot store; None for
    every other error."""
    if isinstance(error, _BUGS):
        return None
    if isinstance(error, _FULL) and not isinstance(error, _GONE):
        return f"Postgres cannot store anything: {_said(error)}"
    if isinstance(error, _GONE) or _closed(error):
        return f"Postgres does not answer: {_said(error)}"
    return None


def _closed(error: BaseException) -> bool:
    return isinstance(error, RuntimeError) and _UVLOOP_CLOSED in str(error)


def _said(error: BaseException) -> str:
    """Return the first line; the others are hints about the statement."""
    return str(error).partition("\n")[0] or type(error).__name__


A = TypeVar("A")
R = TypeVar("R")


def map_unavailable(
    handler: Callable[[A], Awaitable[R]], error: Callable[[str], Exception]
) -> Callable[[A], Awaitable[R]]:
    """Wrap a query handler to raise `error(reason)` instead of StorageUnavailable: a client is
    told, while a delivery is retried."""

    async def mapped(query: A) -> R:
        try:
            return await handler(query)
        except StorageUnavailable as outage:
            raise error(str(outage)) from outage

    return mapped
