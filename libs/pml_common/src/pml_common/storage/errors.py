"""What can go wrong in storage, apart from Postgres's own errors."""

import asyncpg

from pml_common.errors import Retryable


class StorageUnavailable(Retryable):
    """Postgres does not answer, or cannot store anything now. Try again later."""


class MigrationChanged(Exception):
    """A migration differs from the one that was applied; write a new one instead."""


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
"""No server, or no connection to it any more. The last two are the driver's own: it raises them
where a connection ended between two of its steps."""

_FULL = (
    asyncpg.InsufficientResourcesError,
    asyncpg.PostgresSystemError,
    asyncpg.ReadOnlySQLTransactionError,
)
"""A server that answers and stores nothing: a full or failing disk, no memory, and a primary that
became read-only, as managed ones do when their disk is full."""

_BUGS = (
    ValueError,
    asyncpg.UnsupportedClientFeatureError,
    asyncpg.UnsupportedServerFeatureError,
    asyncpg.OutdatedSchemaCacheError,
)
"""Of these classes, what is wrong with a statement, its arguments or the configuration."""

_UVLOOP_CLOSED = "the handler is closed"
"""How uvloop refuses to write to a socket that has ended, before the driver is told."""


def outage_in(error: BaseException) -> str | None:
    """How an error of the driver says that Postgres is away or stores nothing; None for every
    other error."""
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
    """Its first line, as what follows are hints for whoever wrote the statement."""
    return str(error).partition("\n")[0] or type(error).__name__
