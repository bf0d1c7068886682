"""Deletion of a workflow's traces."""

import asyncio
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from pml_common.bus.clock import ManualClock
from pml_common.contracts.gateway import PrincipalDataDeleted, WorkflowDataDeleted
from pml_common.contracts.learner import GiveFeedback, ListFeedback, ListToolUsage, ListTraces
from pml_common.contracts.scope import Scope
from pml_common.testing.memory_broker import MemoryBroker
from pml_common.testing.memory_bus import MemoryBus
from pml_learner.app import delete_old
from pml_learner.domain.batch import capabilities_of
from pml_learner.domain.retention import Retention
from pml_learner.domain.temporal_difference import TdRule
from pml_learner.entrypoints.bus.on_principal_data_deleted import on_principal_data_deleted
from pml_learner.entrypoints.bus.on_run_finished import on_runs_finished
from pml_learner.entrypoints.bus.on_workflow_data_deleted import on_workflow_data_deleted
from pml_learner.ports import TraceStore
from services.learner.tests.support.builders import (
    ELSEWHERE,
    SCOPE,
    STARTED_AT,
    finished_run,
    nested_run,
    tool_call,
)

pytestmark = pytest.mark.integration
NESTED = "cd34" * 16


async def delete(store: TraceStore, workflow_id: object, scope: Scope = SCOPE) -> None:
    """Handle the event, twice: it may be redelivered."""
    event = WorkflowDataDeleted.model_validate(
        {
            "scope": scope,
            "event_id": uuid4(),
            "workflow_id": workflow_id,
            "deleted_by": "agent-7",
            "deleted_at": datetime(2026, 11, 21, tzinfo=UTC),
        }
    )
    for _ in range(2):
        assert await on_workflow_data_deleted(event, store, TdRule()) == ()


async def kept(store: TraceStore, scope: Scope = SCOPE) -> set[object]:
    """Return the workflows that have traces."""
    return {each.workflow_id for each in (await store.traces(ListTraces(scope=scope))).traces}


@pytest.mark.parametrize("trace_first", [True, False])
async def test_traces_are_gone_in_either_order_and_what_was_learned_stays(
    trace_store: TraceStore, trace_first: bool
) -> None:
    workflow_id = uuid4()
    first = finished_run(workflow_id=workflow_id, calls=[tool_call("fs:read", 0, 1)])
    run = first.model_copy(update={"nested": (nested_run(first.trace_id, NESTED),)})
    other, theirs = finished_run(), finished_run(workflow_id=workflow_id, scope=ELSEWHERE)
    if not trace_first:
        await delete(trace_store, workflow_id)
    handled = await on_runs_finished([run, other, theirs], trace_store, TdRule())
    if trace_first:
        given = GiveFeedback(
            scope=SCOPE, workflow_id=workflow_id, principal="mira", useful=True, comment="of mine"
        )
        assert await trace_store.judge(given) is not None
        await delete(trace_store, workflow_id)
    assert await kept(trace_store) == {other.workflow_id}
    assert await kept(trace_store, ELSEWHERE) == {workflow_id}
    assert any(handled.facts.values())
    async with trace_store.batch([uuid4()], "another") as batch:
        known = await batch.experience_of(capabilities_of([run]))
    counts = {each.usage.count for each in known.values()}
    assert counts == ({2, 1} if trace_first else {1, 0})
    assert (await trace_store.usage(ListToolUsage(scope=SCOPE))).calls == 2
    assert (await trace_store.judged(ListFeedback(scope=SCOPE))).total == trace_first
    redelivered = await on_runs_finished([run], trace_store, TdRule())
    assert await kept(trace_store) == {other.workflow_id}
    assert set(redelivered.facts) == {run.event_id}


async def test_of_traces_that_come_at_the_same_time_none_is_left(trace_store: TraceStore) -> None:
    runs = [finished_run() for _ in range(8)]
    arriving = (on_runs_finished([run], trace_store, TdRule()) for run in runs)
    deleting = (delete(trace_store, run.workflow_id) for run in runs)
    await asyncio.gather(*arriving, *deleting)
    assert await kept(trace_store) == set()


async def test_traces_and_opinions_of_a_principal_are_gone_and_what_was_learned_stays(
    trace_store: TraceStore,
) -> None:
    own, young = finished_run(), finished_run(started_at=STARTED_AT + 9e9)
    others = finished_run().model_copy(update={"principal": "mira"})
    theirs = finished_run(scope=ELSEWHERE)
    runs = [own, young, others, theirs]
    await on_runs_finished(runs, trace_store, TdRule())
    for who in ("agent-7", "mira"):
        given = GiveFeedback(
            scope=SCOPE, workflow_id=others.workflow_id, principal=who, useful=True
        )
        assert await trace_store.judge(given) is not None
    event = PrincipalDataDeleted(
        scope=SCOPE,
        event_id=uuid4(),
        deletion_id=uuid4(),
        principal="agent-7",
        deleted_by="agent-7",
        deleted_at=datetime.fromtimestamp(STARTED_AT / 1000, UTC) + timedelta(days=100),
    )
    for _ in range(2):
        assert await on_principal_data_deleted(event, trace_store, TdRule()) == ()
    assert await kept(trace_store) == {young.workflow_id, others.workflow_id}
    assert await kept(trace_store, ELSEWHERE) == {theirs.workflow_id}
    (opinion,) = (await trace_store.judged(ListFeedback(scope=SCOPE))).feedback
    assert (opinion.useful, opinion.not_useful) == (1, 0)
    async with trace_store.batch([uuid4()], "another") as batch:
        known = await batch.experience_of(capabilities_of([own]))
    assert [each.usage.count for each in known.values()] == [3]


async def test_traces_are_kept_for_so_many_days_by_the_bus_clock(
    trace_store: TraceStore,
) -> None:
    began = datetime.fromtimestamp(STARTED_AT / 1000, UTC)
    keep = Retention(timedelta(days=90))
    await on_runs_finished([finished_run() for _ in range(3)], trace_store, TdRule())

    async def left_after(days: int) -> int:
        bus = MemoryBus(MemoryBroker(ManualClock(began + timedelta(days=days))))
        await delete_old(bus, trace_store, keep)
        return (await trace_store.traces(ListTraces(scope=SCOPE))).total

    assert [await left_after(days) for days in (89, 91)] == [3, 0]
