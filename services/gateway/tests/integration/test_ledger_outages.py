"""Postgres outages during tool calls: each call is made once, and its outcome is the tool's."""

import asyncio
from datetime import UTC, datetime
from typing import NoReturn
from uuid import uuid4

import asyncpg
import pytest

from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus.errors import QueryFailed
from pml_common.contracts.gateway import CallTool, ToolOutcome
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import JsonObject
from pml_common.storage.errors import StorageUnavailable
from pml_common.storage.pool import connection
from pml_common.storage.schema import open_scoped_schema
from pml_common.storage.scoped import ScopedPools, at_once
from pml_gateway.adapters.postgres.ledger import PostgresCallLedger
from pml_gateway.application.tool_calls import ToolCalls
from pml_gateway.domain.tool_calls.ledger import LOST, Entry, fingerprint
from pml_gateway.ports import CallOrigin
from services.gateway.tests.support.builders import WRITE, later, workflow
from services.gateway.tests.support.calling import call, tool_calls
from services.gateway.tests.support.harness import FakeServers

pytestmark = pytest.mark.integration

CALLS = 96


class CountingServers(FakeServers):
    """A slow tool that is not repeatable; counts its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.made_in_all = 0

    async def call(
        self, tool_id: str, args: JsonObject, timeout_s: float, origin: CallOrigin
    ) -> ToolOutcome:
        self.made_in_all += 1
        await asyncio.sleep(0)
        return ToolOutcome(status="ok", result=self.made_in_all)


async def _end_connections(dsn: str) -> None:
    try:
        outside = await asyncpg.connect(dsn)
    except (OSError, asyncpg.PostgresError):
        return
    try:
        await outside.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid() "
            "AND backend_type = 'client backend'"
        )
    except (OSError, asyncpg.PostgresError):
        return
    finally:
        outside.terminate()


async def _outcome(calls: ToolCalls, asked: CallTool) -> ToolOutcome:
    """Make a call as an executor does: again while the answer says so."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                return await calls.on_call_tool(asked)
            except QueryFailed as failure:
                if failure.code != "unavailable":
                    raise
                await asyncio.sleep(0)


async def test_calls_under_which_postgres_falls_again_and_again_keep_their_outcomes(
    postgres_dsn: str,
) -> None:
    servers, patient = CountingServers(), {"timeout_s": 50.0}  # on a busy machine, too
    asked = [call(workflow(), WRITE).model_copy(update=patient) for _ in range(CALLS)]
    async with open_scoped_schema(postgres_dsn, "gateway", "pml_gateway") as pool:
        calls = tool_calls(servers, PostgresCallLedger(pool), now=lambda: datetime.now(UTC))
        asking = [asyncio.create_task(_outcome(calls, each)) for each in asked]
        while not all(each.done() for each in asking):
            await _end_connections(postgres_dsn)
        assert {each.result().status for each in asking} == {"ok"}
        assert servers.made_in_all == CALLS
    async with open_scoped_schema(postgres_dsn, "gateway", "pml_gateway") as pool:
        kept = [await PostgresCallLedger(pool).find(each) for each in asked]
        assert [each.outcome for each in kept if each] == [each.result() for each in asking]


async def _unconfirmed(pool: ScopedPools, scope: Scope, query: str, *values: object) -> NoReturn:
    """Lose the connection after the statement has taken effect."""
    async with connection(pool.pool) as held:
        await held.execute(*at_once(scope, query, *values))
    raise StorageUnavailable("the connection was lost before the answer came")


async def test_a_beginning_that_was_stored_and_not_confirmed_is_no_call(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers, asked = CountingServers(), call(workflow(), WRITE)
    async with open_scoped_schema(postgres_dsn, "gateway", "pml_gateway") as pool:
        ledger = PostgresCallLedger(pool)
        calls = tool_calls(servers, ledger, now=lambda: datetime.now(UTC))
        monkeypatch.setattr(ScopedPools, "change_at_once", _unconfirmed)
        with pytest.raises(QueryFailed, match="nothing was called"):
            await calls.on_call_tool(asked)
        monkeypatch.undo()
        assert await ledger.find(asked) is not None
        assert (await calls.on_call_tool(asked)).status == "ok"
        assert servers.made_in_all == 1


async def test_a_call_that_was_made_is_not_taken_for_a_beginning_without_one(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first beginning was confirmed, so its call was made; a later one was not confirmed."""
    asked, owner = call(workflow(), WRITE), uuid4()
    async with open_scoped_schema(postgres_dsn, "gateway", "pml_gateway") as pool:
        ledger = PostgresCallLedger(pool)
        made = Entry(fingerprint(asked), owner, later(10), tool=asked.tool)
        assert await ledger.begin(asked, made) is None
        monkeypatch.setattr(ScopedPools, "change_at_once", _unconfirmed)
        with pytest.raises(StorageUnavailable):
            await ledger.begin(asked, Entry(fingerprint(asked), owner, later(11)))
        monkeypatch.undo()
        assert await ledger.begin(asked, Entry(fingerprint(asked), owner, later(12))) == made
        calls = tool_calls(CountingServers(), ledger, owner, now=lambda: datetime.now(UTC))
        assert await calls.on_call_tool(asked) == LOST
