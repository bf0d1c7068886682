"""Traces of several months: read together, deleted by the month."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import asyncpg
import pytest

from libs.pml_local.tests.support.databases import migrated
from libs.pml_local.tests.support.harness import eventually
from pml_common.contracts.executor import RunFinished
from pml_common.contracts.learner import FindTrace, ListTraces, TraceOrder
from pml_common.contracts.scope import Scope
from pml_common.storage.migrations import migrate, read_migrations
from pml_common.storage.schema import open_scoped_schema
from pml_common.storage.scoped import ScopedPools
from pml_learner.adapters.postgres_traces import PostgresTraceStore
from pml_learner.application.relearning import delete_some
from pml_learner.domain.retention import Retention
from pml_learner.domain.temporal_difference import TdRule
from pml_learner.entrypoints.bus.on_run_finished import on_runs_finished
from pml_learner.ports import AlreadyStored, TraceStore
from services.learner.tests.support.builders import ELSEWHERE, SCOPE, finished_run

pytestmark = pytest.mark.integration
NOW = datetime(2026, 11, 24, tzinfo=UTC)
DAY = timedelta(days=1)
TABLES = """
SELECT relname FROM pg_class JOIN pg_inherits ON inhrelid = pg_class.oid
WHERE inhparent = 'execution_trace'::regclass ORDER BY relname
"""
KNOWN = """
SELECT relname FROM pg_stat_user_tables
WHERE relname LIKE 'execution_trace_%' AND last_analyze IS NOT NULL
"""
OLD_ROW = """
WITH met AS (
    INSERT INTO learning (org, project, capability_id, code_hash) VALUES ('acme', 'webapp', $1, '')
    ON CONFLICT DO NOTHING
)
INSERT INTO execution_trace (
    org, project, id, capability_id, workflow_id, code_hash, executed_at, success, duration_ms,
    result, user_id, executed_path, decisions, task_results, parent_trace_id
) VALUES (
    'acme', 'webapp', $2, $1, $2, '', $3, true, 1, '3', 'mira', '{n1}', '[]', '[]', $4
)
"""


def run_of(
    days_ago: int, *, scope: Scope = SCOPE, path: tuple[str, ...] = ("n1",), success: bool = True
) -> RunFinished:
    """Build a run of so many days ago."""
    at = (NOW - days_ago * DAY).timestamp() * 1000
    return finished_run(path, scope=scope, started_at=at, success=success)


async def learn(store: TraceStore, *runs: RunFinished) -> None:
    await on_runs_finished(runs, store, TdRule())


async def listed(
    store: TraceStore, *, intent: str | None = None, order: TraceOrder = "newest"
) -> Sequence[UUID]:
    """Return the traces of the scope, read in pages of two by cursors."""
    found: list[UUID] = []
    cursor = None
    while True:
        query = ListTraces(scope=SCOPE, intent=intent, order=order, limit=2, cursor=cursor)
        page = await store.traces(query)
        found += [trace.trace_id for trace in page.traces]
        cursor = page.next_cursor
        if cursor is None:
            assert page.total == len(found)
            return found


async def left(store: TraceStore, scope: Scope = SCOPE) -> set[UUID]:
    return {each.workflow_id for each in (await store.traces(ListTraces(scope=scope))).traces}


async def tables(pool: ScopedPools) -> set[str]:
    async with pool.across() as held:
        return {row["relname"] for row in await held.fetch(TABLES)}


async def test_traces_of_all_months_are_found_by_id_intent_and_order(
    trace_store: TraceStore,
) -> None:
    runs = [run_of(days) for days in (0, 25, 60, 100, 400)]
    other = run_of(30).model_copy(update={"intent": "another"})
    for run in (*runs, other):
        await learn(trace_store, run)
    newest = [run.trace_id for run in sorted((*runs, other), key=lambda run: -run.started_at)]
    assert await listed(trace_store) == newest
    assert await listed(trace_store, intent="another") == [other.trace_id]
    assert await listed(trace_store, intent=runs[0].intent) == [run.trace_id for run in runs]
    for scope, expected in ((SCOPE, runs[4].trace_id), (ELSEWHERE, None)):
        found = await trace_store.trace(FindTrace(scope=scope, trace_id=runs[4].trace_id))
        assert (found and found.trace_id) == expected


async def test_the_most_surprising_traces_come_first(trace_store: TraceStore) -> None:
    usual = [run_of(days) for days in (9, 8, 7, 6)]
    surprise, new = run_of(90, success=False), run_of(5, path=("n2",))
    for run in (*usual, surprise, new):
        await learn(trace_store, run)
    page = await trace_store.traces(ListTraces(scope=SCOPE, order="priority"))
    priorities = [trace.priority for trace in page.traces]
    assert priorities == sorted(priorities, reverse=True)
    found = [trace.trace_id for trace in page.traces]
    assert found[:2] == [new.trace_id, usual[0].trace_id]  # each the first of its path
    assert found[2] == surprise.trace_id
    assert await listed(trace_store, order="priority") == found


async def test_a_trace_is_not_stored_twice_not_even_in_another_month(
    trace_store: TraceStore,
) -> None:
    run = run_of(0)
    again = run_of(40).model_copy(update={"trace_id": run.trace_id})
    await learn(trace_store, run)
    for twice in ([again], [run_of(1), again]):
        with pytest.raises(AlreadyStored, match=str(run.trace_id)):
            await learn(trace_store, *twice)
    both = run_of(2)
    with pytest.raises(AlreadyStored):
        await learn(trace_store, both, run_of(70).model_copy(update={"trace_id": both.trace_id}))
    await learn(trace_store, run)  # a redelivery
    assert await left(trace_store) == {run.workflow_id}


async def test_a_month_is_dropped_once_no_scope_keeps_a_trace_of_it(
    trace_store: TraceStore,
) -> None:
    retention = Retention(60 * DAY, dict([(ELSEWHERE, 400 * DAY)]))
    ours = [run_of(days) for days in (0, 59, 100, 300)]
    theirs = run_of(100, scope=ELSEWHERE)
    await learn(trace_store, *ours, theirs)
    await trace_store.drop_months(retention, NOW)
    assert await left(trace_store) == {run.workflow_id for run in ours[:3]}
    assert await left(trace_store, ELSEWHERE) == {theirs.workflow_id}
    await trace_store.drop_months(retention, NOW)
    assert await delete_some(trace_store, SCOPE, retention.since(SCOPE, NOW), 10, TdRule()) == 1
    assert await left(trace_store) == {run.workflow_id for run in ours[:2]}
    await trace_store.drop_months(retention, NOW + 400 * DAY)
    assert await left(trace_store) == await left(trace_store, ELSEWHERE) == set()
    late = run_of(300)
    await learn(trace_store, late)
    assert await left(trace_store) == {late.workflow_id}


async def test_a_month_that_another_replica_dropped_is_made_again(postgres_dsn: str) -> None:
    async with open_scoped_schema(postgres_dsn, "learner", "pml_learner") as pool:
        one, other = PostgresTraceStore(pool), PostgresTraceStore(pool)
        await learn(one, run_of(300))
        table = f"execution_trace_{NOW - 300 * DAY:%Y_%m}"
        assert table in await tables(pool)
        await other.drop_months(Retention(60 * DAY), NOW)
        assert table not in await tables(pool)
        late = run_of(300)
        with pytest.raises(asyncpg.CheckViolationError):
            await learn(one, late)
        await learn(one, late)  # delivered again
        assert await left(one) == {late.workflow_id}


async def test_a_new_month_gets_statistics_once_it_has_traces(postgres_dsn: str) -> None:
    async with open_scoped_schema(postgres_dsn, "learner", "pml_learner") as pool:
        store = PostgresTraceStore(pool)

        async def known() -> set[str]:
            await store.know_months()
            async with pool.across() as held:
                rows = await held.fetch(KNOWN)
            return {row["relname"] for row in rows}

        assert await known() == set()
        await learn(store, *(run_of(0) for _ in range(600)))

        async def this_month_alone() -> bool:
            return await known() == {f"execution_trace_{NOW:%Y_%m}"}

        await eventually(this_month_alone)


async def test_stored_traces_are_carried_over(empty_dsn: str) -> None:
    before = [each for each in read_migrations("pml_learner") if each.name < "0008"]
    await migrate(empty_dsn, "learner", before)
    capability, ids = uuid4(), [uuid4() for _ in range(3)]
    session = await asyncpg.connect(empty_dsn, server_settings={"search_path": "learner"})
    for number, days in enumerate((0, 30, 200)):
        parent = ids[number - 1] if number else None
        await session.execute(OLD_ROW, capability, ids[number], NOW - days * DAY, parent)
    await session.close()
    dsn = await migrated(empty_dsn, "learner")
    async with open_scoped_schema(dsn, "learner", "pml_learner") as pool:
        store = PostgresTraceStore(pool)
        page = await store.traces(ListTraces(scope=SCOPE, capability_id=capability))
        assert [trace.trace_id for trace in page.traces] == ids
        assert [trace.parent_trace_id for trace in page.traces] == [None, *ids[:2]]
        assert (page.traces[0].result, page.traces[0].executed_path) == (3, ("n1",))
        months = {f"execution_trace_{NOW - days * DAY:%Y_%m}" for days in (0, 30, 200)}
        assert months < await tables(pool)  # and those for what comes now
