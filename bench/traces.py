"""The trace store: learning, and each operation in a full store with its query plan.

P6: traces learned a second, by the handler in batches of 200, divided by the rows of the same
traces that asyncpg copies a second into an equal table; in turns, the median of three. Then the
store is filled with copies of them over 90 days (which taught nothing), and each operation is
timed; its plan is in the report. Postgres is durable; bus, sandbox, executor and gateway are left
out.
`uv run python bench/traces.py [--traces N] [--learn N] [--report FILE]`
"""

import argparse
import asyncio
import gc
import os
import shutil
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parent.parent))  # when run as a script

import asyncpg

from libs.pml_local.tests.support.databases import Databases, as_owner, migrated
from libs.pml_local.tests.support.harness import (
    reachable_folder,
    running_postgres,
)
from pml_common.contracts.executor import RunFinished
from pml_common.contracts.learner import FindTrace, ListTraces
from pml_common.contracts.trace import BranchDecision
from pml_common.storage.queries import load_queries
from pml_common.storage.schema import open_scoped_schema
from pml_common.storage.scoped import ScopedPools
from pml_learner.adapters.postgres_traces import PostgresTraceStore
from pml_learner.application.relearning import delete_some, delete_workflow
from pml_learner.domain.orders import order_of
from pml_learner.domain.retention import Retention
from pml_learner.domain.temporal_difference import TdRule
from pml_learner.entrypoints.bus.on_run_finished import on_runs_finished
from services.learner.tests.support.builders import SCOPE, finished_run, tool_call

SQL = load_queries("pml_learner")
CAPABILITIES, FEW, BATCH, TURNS, TIMES, DAYS = 200, 20, 200, 3, 15, 90
DURABLE = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"}
SPACE_GB = 12
"""Free disk that a million traces need at most; less ends the bench."""

_FILL = """
INSERT INTO learner.execution_trace ({columns})
SELECT {values}
FROM learner.execution_trace AS trace, generate_series($1::integer, $2::integer) AS copy
WHERE trace.executed_at >= $3
"""
_FRESH = {
    "id": "gen_random_uuid()",
    "workflow_id": "gen_random_uuid()",
    "executed_at": "executed_at - copy * $4::interval",
    "intent_text": "intent_text || ' ' || copy",
    "priority": "(priority + random()) / 2",
    "position": "NULL",
}
_SIZE = """
SELECT sum(pg_total_relation_size(inhrelid)) FROM pg_inherits
WHERE inhparent = 'learner.execution_trace'::regclass
"""
_COLUMNS = """
SELECT column_name FROM information_schema.columns
WHERE table_schema = 'learner' AND table_name = 'execution_trace' ORDER BY ordinal_position
"""


@dataclass(frozen=True)
class Timed:
    """An operation: p50 and the slowest in milliseconds, and its plan."""

    name: str
    p50_ms: float
    worst_ms: float
    plan: str = ""


def run_of(number: int, capabilities: int = CAPABILITIES) -> RunFinished:
    """Build a run of one of the capabilities, with two calls and a decision."""
    run = finished_run(
        ("n1", "d1", f"n{2 + number % 3}"),
        success=number % 5 != 0,
        duration_ms=5 + number % 20,
        code_hash=f"{number % capabilities:04x}" * 16,
        started_at=time.time() * 1000,
        calls=[tool_call("fs:stat", 0, 1, "n1"), tool_call("fs:read", 2, 3, "n2")],
    )
    decisions = (BranchDecision(node_id="d1", outcome="true"),)
    intent = f"make sure that note {number % 1000} exists"
    return run.model_copy(update={"decisions": decisions, "intent": intent})


async def learn(store: PostgresTraceStore, runs: Sequence[RunFinished]) -> float:
    """Return the traces learned a second."""
    began = time.perf_counter()
    for start in range(0, len(runs), BATCH):
        await on_runs_finished(runs[start : start + BATCH], store, TdRule())
    return len(runs) / (time.perf_counter() - began)


async def copied(dsn: str, count: int) -> float:
    """Return the rows a second that are copied of so many stored traces into an equal table."""
    session = await _owner(dsn)
    try:
        found = await session.fetch("SELECT * FROM execution_trace LIMIT $1", count)
        rows = [tuple(row) for row in found]
        await session.execute("CREATE TABLE copy (LIKE execution_trace INCLUDING ALL)")
        began = time.perf_counter()
        await session.copy_records_to_table("copy", records=rows)
        rate = len(rows) / (time.perf_counter() - began)
        await session.execute("DROP TABLE copy")
    finally:
        await session.close()
    return rate


async def _owner(dsn: str) -> asyncpg.Connection:
    settings = {"search_path": "learner,public", "pml.migrating": "on"}
    return await asyncpg.connect(as_owner(dsn), server_settings=settings)


async def in_turns(
    dsn: str, store: PostgresTraceStore, count: int
) -> tuple[dict[int, list[tuple[float, float]]], int]:
    """Return the traces learned and rows copied a second in each turn, by the number of
    capabilities, and the number of traces stored."""
    rates: dict[int, list[tuple[float, float]]] = {FEW: [], CAPABILITIES: []}
    for _ in range(TURNS):
        for capabilities, some in rates.items():
            runs = [run_of(number, capabilities) for number in range(count)]
            some.append((await learn(store, runs), await copied(dsn, count)))
    return rates, TURNS * len(rates) * count


async def fill(
    pool: ScopedPools, store: PostgresTraceStore, dsn: str, known: int, traces: int
) -> None:
    """Copy the stored traces over the days before, until there are so many."""
    copies = max(0, traces // known - 1)
    now = datetime.now(UTC)
    await store.make_room((now - timedelta(days=day)).timestamp() * 1e3 for day in range(DAYS + 1))
    async with pool.across() as session:
        names = [row["column_name"] for row in await session.fetch(_COLUMNS)]
    values = ", ".join(_FRESH.get(name, f"trace.{name}") for name in names)
    statement = _FILL.format(columns=", ".join(names), values=values)
    apart, session = timedelta(days=DAYS) / max(1, copies), await _owner(dsn)
    try:
        for copy in range(1, copies + 1):
            since = now - timedelta(hours=1)
            await session.execute(statement, copy, copy, since, apart, timeout=600)
        await session.execute("VACUUM ANALYZE learner.execution_trace", timeout=600)
    finally:
        await session.close()


async def timed(name: str, operation: Callable[[], Awaitable[object]], plan: str = "") -> Timed:
    """Time an operation several times."""
    took: list[float] = []
    for _ in range(TIMES):
        began = time.perf_counter()
        await operation()
        took.append((time.perf_counter() - began) * 1000)
    return Timed(name, median(took), max(took), plan)


async def plan_of(pool: ScopedPools, name: str, *args: object) -> str:
    """Run a statement of the store and return its plan with row counts; undo what it did."""
    async with pool.across() as session:
        undone = session.transaction()
        await undone.start()
        try:
            await session.execute(SQL["plan-each"])
            explain = "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) "
            rows = await session.fetch(explain + SQL[name], *args)
        finally:
            await undone.rollback()
    return "\n".join(row[0] for row in rows)


async def operations(
    pool: ScopedPools, store: PostgresTraceStore, known: RunFinished
) -> list[Timed]:
    """Time every operation of the store."""
    capability, where = known.capability.capability_id, (SCOPE.org, SCOPE.project)
    intent, page, first = f"{known.intent} 7", (21, 0), (None,) * 3
    asked = {
        "by capability": ListTraces(scope=SCOPE, capability_id=capability),
        "by workflow": ListTraces(scope=SCOPE, workflow_id=known.workflow_id),
        "by intent": ListTraces(scope=SCOPE, intent=intent),
        "all, newest first": ListTraces(scope=SCOPE),
        "all, by priority": ListTraces(scope=SCOPE, order="priority"),
        "of a capability, by priority": ListTraces(
            scope=SCOPE, capability_id=capability, order="priority"
        ),
    }
    found: list[Timed] = []

    async def save() -> None:
        await learn(store, [run_of(number) for number in range(BATCH)])

    found.append(await timed(f"save, {BATCH} runs in a batch", save))
    one = await plan_of(pool, "find-trace", *where, known.trace_id)
    by_id = FindTrace(scope=SCOPE, trace_id=known.trace_id)
    found.append(await timed("by id", lambda: store.trace(by_id), one))
    for name, query in asked.items():
        filters = query.capability_id, query.workflow_id, query.intent
        order = "list-traces-by-priority" if query.order == "priority" else "list-traces"
        plan = await plan_of(pool, order, *where, *filters, *page, *first)
        found.append(await timed(name, lambda query=query: store.traces(query), plan))
        if name == "all, by priority" or name == "all, newest first":
            found.append(await _deep(pool, store, name, query, order))
    counted = await plan_of(pool, "count-traces", *where, None, None, None, 10_000)
    found.append(Timed("count of all, up to 10,000 (a part of each list)", 0, 0, counted))
    erased = await plan_of(pool, "delete-traces", *where, [known.workflow_id])
    erase = partial(delete_workflow, store, SCOPE, known.workflow_id, TdRule())
    found.append(await timed("delete the data of a workflow", erase, erased))
    return [*found, *await _retention(pool, store)]


async def _deep(
    pool: ScopedPools, store: PostgresTraceStore, name: str, query: ListTraces, order: str
) -> Timed:
    """Time the page after the 200 pages of 200 before."""
    cursor = None
    for _ in range(200):
        some = query.model_copy(update={"limit": 200, "cursor": cursor})
        cursor = (await store.traces(some)).next_cursor or cursor
    later = query.model_copy(update={"cursor": cursor})
    after = order_of(later).after(cursor) or (None,) * 3
    plan = await plan_of(pool, order, SCOPE.org, SCOPE.project, None, None, None, 21, 0, *after)
    return await timed(f"{name}, after 40,000", lambda: store.traces(later), plan)


async def _retention(pool: ScopedPools, store: PostgresTraceStore) -> list[Timed]:
    now, found = datetime.now(UTC), list[Timed]()
    old = now - timedelta(days=DAYS - 2)
    plan = await plan_of(pool, "list-old", SCOPE.org, SCOPE.project, old, 1000)
    began = time.perf_counter()
    gone = await delete_some(store, SCOPE, old, 1000, TdRule())
    took = (time.perf_counter() - began) * 1000
    found.append(Timed(f"delete {gone} old workflows", took, took, plan))
    began = time.perf_counter()
    await store.drop_months(Retention(timedelta(days=40)), now)
    took = (time.perf_counter() - began) * 1000
    found.append(Timed("drop the months before the last 40 days", took, took))
    return found


def table(timings: Sequence[Timed]) -> list[str]:
    """Return the table of the operations."""
    return [
        "| operation | p50, ms | slowest, ms |",
        "| --- | --- | --- |",
        *(f"| {e.name} | {e.p50_ms:.1f} | {e.worst_ms:.1f} |" for e in timings if e.p50_ms),
    ]


async def measure_store(given: argparse.Namespace, home: Path) -> list[str]:
    """Measure learning and each operation; return the lines of the report."""
    lines: list[str] = []

    def say(*some: str) -> None:
        lines.extend(some)
        print("\n".join(some), flush=True)

    load = f"{os.getloadavg()[0]:.1f}"
    async with (
        running_postgres(home, **DURABLE) as server,
        Databases(server).empty() as dsn,
        open_scoped_schema(await migrated(dsn, "learner"), "learner", "pml_learner") as pool,
    ):
        store = PostgresTraceStore(pool)
        first = [run_of(number) for number in range(CAPABILITIES)]
        await learn(store, first)
        gc.freeze()  # as a service does before it is ready; its messages come one by one
        rates, known = await in_turns(dsn, store, given.learn)
        for capabilities, some in rates.items():
            learned = ", ".join(f"{rate:.0f}" for rate, _ in some)
            rows = ", ".join(f"{floor:.0f}" for _, floor in some)
            ratio = median(rate / floor for rate, floor in some)
            say(
                f"P6, {capabilities} capabilities: {learned} traces learned a second, "
                f"{rows} rows copied: {ratio:.3f} (load {load}).",
                "",
            )
        await fill(pool, store, dsn, known + CAPABILITIES, given.traces)
        async with pool.across() as session:
            count = await session.fetchval("SELECT count(*) FROM execution_trace")
            size = await session.fetchval(_SIZE)
        say(f"{count} traces, {int(size) / 2**20:.0f} MiB with their indexes:", "")
        timings = await operations(pool, store, first[7])
        say(*table(timings))
    lines += ["", "## Plans"]
    for each in timings:
        if each.plan:
            lines += [f"### {each.name[0].upper()}{each.name[1:]}", "```", each.plan, "```"]
    return lines


def main() -> None:
    """Measure, and write the report if asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=int, default=20_000)
    parser.add_argument("--learn", type=int, default=4_000)
    parser.add_argument("--report", type=Path, default=None)
    given = parser.parse_args()
    with reachable_folder() as home:
        if shutil.disk_usage(home).free < SPACE_GB * 1e9 * given.traces / 1e6:
            sys.exit(f"{home} has too little room for {given.traces} traces")
        lines = asyncio.run(measure_store(given, home))
    if given.report is not None:
        words = " ".join(["uv run python bench/traces.py", *sys.argv[1:]])
        head = ["# A million traces", f"`{words}`, on two cores beside other load.", ""]
        given.report.write_text("\n".join([*head, *lines]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
