"""Outages of Postgres: the driver's errors that mean one, and the mapping for clients."""

import asyncio
from functools import partial

import asyncpg
import pytest

from pml_common.bus.errors import QueryFailed
from pml_common.storage.errors import StorageUnavailable, map_unavailable, outage_in
from pml_common.storage.pool import storage_errors

INVALID_ARGUMENT = next(
    kind for kind in asyncpg.InterfaceError.__subclasses__() if kind.__name__ == "DataError"
)
"""The driver's error for a query argument; asyncpg exports another class under this name."""


class _Postgres:
    """Unavailable for the first `outages` queries."""

    def __init__(self, outages: int) -> None:
        self.outages = outages
        self.asked = 0

    async def answer(self, question: str) -> str:
        self.asked += 1
        if self.asked <= self.outages:
            raise StorageUnavailable("Postgres does not answer")
        return question.upper()


async def test_an_outage_is_mapped_to_the_given_error() -> None:
    answer = map_unavailable(_Postgres(outages=1).answer, partial(QueryFailed, "unavailable"))
    with pytest.raises(QueryFailed, match="does not answer") as failure:
        await answer("yes")
    assert failure.value.code == "unavailable"
    assert await answer("yes") == "YES"


@pytest.mark.parametrize(
    "error",
    [
        asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation"),
        asyncpg.ConnectionFailureError("connection failure"),
        asyncpg.CannotConnectNowError("the database system is in recovery mode"),
        asyncpg.AdminShutdownError("terminating connection due to administrator command"),
        asyncpg.CrashShutdownError("terminating connection because of crash"),
        asyncpg.IdleSessionTimeoutError("terminating connection due to idle-session timeout"),
        asyncpg.IdleInTransactionSessionTimeoutError("terminating connection"),
        asyncpg.TransactionTimeoutError("terminating connection due to transaction timeout"),
        asyncpg.QueryCanceledError("canceling statement due to user request"),
        asyncpg.TooManyConnectionsError("sorry, too many clients already"),
        asyncpg.InterfaceError("connection is closed"),
        asyncpg.InternalClientError("cannot switch to state 15; another operation (2) is ..."),
        asyncpg.exceptions.ProtocolError("unexpected message"),
        asyncpg.exceptions.TargetServerAttributeNotMatched("no host is primary"),
        ConnectionResetError("reset by peer"),
        ConnectionError("unexpected connection_lost() call"),
        TimeoutError(),
        RuntimeError("unable to perform operation on <TCPTransport>; the handler is closed"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_connection_that_is_gone_is_an_outage(error: Exception) -> None:
    assert str(outage_in(error)).startswith("Postgres does not answer: ")
    with pytest.raises(StorageUnavailable, match="does not answer"), storage_errors():
        raise error


@pytest.mark.parametrize(
    "error",
    [
        asyncpg.DiskFullError("could not extend file: No space left on device"),
        asyncpg.OutOfMemoryError("out of memory"),
        asyncpg.PostgresIOError("could not read block"),
        asyncpg.PostgresSystemError("could not fsync file"),
        asyncpg.ReadOnlySQLTransactionError("cannot execute INSERT in a read-only transaction"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_server_that_stores_nothing_is_an_outage_and_says_why(error: Exception) -> None:
    assert outage_in(error) == f"Postgres cannot store anything: {error}"
    with pytest.raises(StorageUnavailable, match="cannot store anything"), storage_errors():
        raise error


@pytest.mark.parametrize(
    "error",
    [
        asyncpg.UniqueViolationError("duplicate key"),
        asyncpg.UndefinedTableError("no such table"),
        asyncpg.exceptions.DataError("invalid input for query argument $1"),
        INVALID_ARGUMENT("invalid input for query argument $1"),
        asyncpg.exceptions.ClientConfigurationError("invalid DSN"),
        asyncpg.exceptions.UnsupportedServerFeatureError("no such feature"),
        asyncpg.exceptions.OutdatedSchemaCacheError("cached plan"),
        asyncpg.InvalidPasswordError("password authentication failed"),
        LookupError("neither new nor known"),
        RuntimeError("ours"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_bug_is_not_an_outage(error: Exception) -> None:
    assert outage_in(error) is None
    with pytest.raises(type(error)), storage_errors():
        raise error


def test_a_cancelled_statement_stays_cancelled() -> None:
    with pytest.raises(asyncio.CancelledError), storage_errors():
        raise asyncio.CancelledError
