"""Contract of stores: deletion of a workflow's data."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import uuid4

import asyncpg
import pytest

from libs.pml_local.tests.support.databases import SharedDatabase, as_owner
from pml_common.contracts.decision import Verdict
from pml_common.contracts.gateway import ToolOutcome
from pml_gateway.domain.api.api import ExecuteRequest
from pml_gateway.domain.tool_calls.ledger import Entry, fingerprint
from pml_gateway.domain.workflow.deletion import deleted
from pml_gateway.domain.workflow.events import Analyzed, Decided
from pml_gateway.domain.workflow.result_cache import CachedResult
from pml_gateway.domain.workflow.workflow import Workflow
from services.gateway.tests.conftest import Stores
from services.gateway.tests.contract.test_cached_results import KEY
from services.gateway.tests.support.builders import (
    AT,
    ELSEWHERE,
    SCOPE,
    analyzed,
    finished,
    later,
    workflow,
)
from services.gateway.tests.support.calling import call
from services.gateway.tests.support.steps import step
from services.gateway.tests.support.stored import take

pytestmark = pytest.mark.integration

SECRET = "a word that must go"


async def ended(stores: Stores, key: str, verdict: Verdict = "ask") -> Workflow:
    """Store a workflow that was analysed, ran and ended, with the secret in all it has."""
    request = ExecuteRequest(code=f"return '{SECRET}';", intent=SECRET, args={SECRET: SECRET})
    store, new = stores.workflows, workflow(request, key=key)
    await store.accept(new, ())
    analysis = analyzed(new, verdict)
    known = (await take(store, new, Analyzed(analysis, AT), analysis)).workflow
    assert known is not None
    if known.approval is not None:
        decided = Decided(known.approval.approval_id, "approved", "mira", later(1), reason=SECRET)
        taken = await store.change(SCOPE, new.workflow_id, lambda before: step(before, decided))
        assert taken is not None
        known, _ = taken
    (over,) = await store.end([finished(known, result=SECRET)])
    made = call(over)
    entry = Entry(fingerprint(made), uuid4(), later(12), tool="fs:read")
    await stores.ledger.settle(made, entry, ToolOutcome(status="ok", result=SECRET))
    return over


async def test_all_data_of_one_workflow_is_deleted_and_of_no_other(stores: Stores) -> None:
    store = stores.workflows
    one, other = await ended(stores, "k"), await ended(stores, "another")
    mine, theirs = KEY, replace(KEY, digest="cd" * 32)
    await stores.results.keep(mine, CachedResult(one.workflow_id, None))
    await stores.results.keep(theirs, CachedResult(other.workflow_id, None))
    await stores.outbox.drop([each.message.message_id for each in await stores.outbox.claim(50)])
    assert await store.change(ELSEWHERE, one.workflow_id, lambda w: deleted(w, later(60))) is None
    for _ in range(2):
        taken = await store.change(SCOPE, one.workflow_id, lambda w: deleted(w, later(60)))
        assert taken is not None
    told = [each.message for each in await stores.outbox.claim(10)]
    assert told == list(deleted(one, later(60))[1])
    left = await store.get(SCOPE, one.workflow_id)
    assert left is not None
    assert left.deleted_at == later(60)
    assert SECRET not in repr(left)
    assert left.approval is not None
    assert (left.approval.outcome, left.approval.decided_by) == ("approved", "mira")
    assert await store.get(SCOPE, other.workflow_id) == other
    assert await stores.results.find(mine) is None
    assert await stores.results.find(theirs) is not None
    calls = [call(one), call(other)]
    assert [await stores.ledger.find(each) is None for each in calls] == [True, False]
    listed = (await store.page(SCOPE, 10, 0)).workflows
    assert {each.workflow_id: each.deleted_at for each in listed} == {
        one.workflow_id: later(60),
        other.workflow_id: None,
    }
    again = workflow(ExecuteRequest(code="return 2;"), key="k")
    assert await store.accept(again, ()) == left
    assert (await take(store, left, finished(one, result=SECRET))).workflow == left


async def test_no_row_of_the_schema_has_it_any_more(shared: SharedDatabase, stores: Stores) -> None:
    asked, over = await ended(stores, "another"), await ended(stores, "k", "allow")
    await stores.outbox.drop([each.message.message_id for each in await stores.outbox.claim(50)])
    assert await _tables_with(shared.dsn, SECRET) == [
        "approval",
        "inbox",
        "tool_call",
        "workflow",
    ]
    for each in (asked, over):
        await stores.workflows.change(SCOPE, each.workflow_id, lambda w: deleted(w, later(60)))
    assert await _tables_with(shared.dsn, SECRET) == []


async def _tables_with(dsn: str, text: str) -> Sequence[str]:
    conn = await asyncpg.connect(as_owner(dsn), server_settings={"pml.migrating": "on"})
    try:
        tables = await conn.fetch(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'gateway' ORDER BY tablename"
        )
        return [
            name
            for (name,) in tables
            if await conn.fetchval(
                f"SELECT count(*) FROM gateway.{name} AS each WHERE each::text LIKE $1",  # noqa: S608
                f"%{text}%",
            )
        ]
    finally:
        await conn.close()
