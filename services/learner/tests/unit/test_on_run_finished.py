"""Learning from a delivered run, and from one delivered again."""

import asyncio
from typing import TypeGuard
from uuid import uuid4

from pml_common.contracts import ids
from pml_common.contracts.base import Message
from pml_common.contracts.learner import EdgesObserved, LearningUpdated, ListTraces
from pml_learner.adapters.memory_traces import MemoryTraceStore
from pml_learner.domain.temporal_difference import TdRule
from pml_learner.entrypoints.bus.on_list_traces import on_list_traces
from pml_learner.entrypoints.bus.on_run_finished import on_run_finished
from services.learner.tests.runs import CODE_HASH, SCOPE, STARTED_AT, call, finished, inside


async def test_a_redelivered_run_states_the_same_and_teaches_nothing() -> None:
    traces = MemoryTraceStore()
    run = finished(calls=[call("fs:stat", 0, 1), call("fs:read", 2, 3)])
    facts = await on_run_finished(run, traces, TdRule())
    await on_run_finished(finished(), traces, TdRule())
    assert await on_run_finished(run, traces, TdRule()) == facts
    page = await on_list_traces(ListTraces(scope=SCOPE), traces)
    assert page.total == 2


async def test_of_a_dry_run_the_trace_is_kept_and_nothing_is_learned() -> None:
    traces = MemoryTraceStore()
    run = finished(calls=[call("fs:stat", 0, 1), call("fs:read", 2, 3)], dry_run=True)
    assert await on_run_finished(run, traces, TdRule()) == ()
    (kept,) = (await on_list_traces(ListTraces(scope=SCOPE), traces)).traces
    assert (kept.dry_run, kept.priority) == (True, 0.0)
    (update, *_) = await on_run_finished(finished(), traces, TdRule())
    assert _is_update(update)
    assert update.revision == 1


async def test_runs_of_one_capability_at_once_are_all_learned() -> None:
    traces = MemoryTraceStore()
    said = await asyncio.gather(*(on_run_finished(finished(), traces, TdRule()) for _ in range(9)))
    revisions = [fact.revision for facts in said for fact in facts if _is_update(fact)]
    assert sorted(revisions) == list(range(1, 10))


async def test_capabilities_that_a_run_called_learn_from_their_own_part() -> None:
    traces, workflow = MemoryTraceStore(), uuid4()
    root = ids.root_trace_id(workflow)
    outer, inner = "cd" * 32, "ef" * 32
    first = inside(root, outer, "n1", started_at=STARTED_AT + 1)
    deep = inside(first.trace_id, inner, "n1/n2", started_at=STARTED_AT + 2)
    again = inside(root, inner, "n2", success=False, started_at=STARTED_AT + 3)
    run = finished(
        ("n1", "n2"),
        nested=[first, deep, again],
        calls=[
            call("a:x", 0, 1, "n1/n1", first.trace_id),
            call("b:y", 2, 3, "n1/n2/n1", deep.trace_id),
            call("c:z", 4, 5, "n3", root),
        ],
        workflow_id=workflow,
    )

    facts = await on_run_finished(run, traces, TdRule())

    updates = {fact.capability_id: fact for fact in facts if _is_update(fact)}
    assert len(updates) == len([fact for fact in facts if _is_update(fact)]) == 3
    learned = updates[again.capability.capability_id]
    assert (learned.revision, learned.usage.count, learned.usage.success_count) == (2, 2, 1)
    assert (learned.trace_id, updates[run.capability.capability_id].revision) == (
        again.trace_id,
        1,
    )
    (edges,) = [fact for fact in facts if isinstance(fact, EdgesObserved)]
    assert [(edge.from_tool, edge.to_tool) for edge in edges.edges] == [
        ("a:x", "b:y"),
        ("b:y", "c:z"),
    ]
    page = await on_list_traces(ListTraces(scope=SCOPE, workflow_id=workflow), traces)
    seen = [(t.trace_id, t.parent_trace_id, t.node_id, t.name) for t in page.traces]
    assert seen == [
        (root, None, None, None),
        (again.trace_id, root, "n2", again.name),
        (deep.trace_id, first.trace_id, "n1/n2", deep.name),
        (first.trace_id, root, "n1", first.name),
    ]
    assert [[t.node_id for t in trace.task_results] for trace in page.traces] == [
        ["n3"],
        [],
        ["n1"],
        ["n1"],
    ]
    assert await on_run_finished(run, traces, TdRule()) == facts


async def test_a_capability_that_calls_itself_learns_from_both() -> None:
    traces, workflow = MemoryTraceStore(), uuid4()
    itself = inside(ids.root_trace_id(workflow), CODE_HASH)
    (update,) = await on_run_finished(
        finished(nested=[itself], workflow_id=workflow), traces, TdRule()
    )
    assert _is_update(update)
    assert (update.revision, update.usage.count) == (2, 2)


def _is_update(fact: Message) -> TypeGuard[LearningUpdated]:
    return isinstance(fact, LearningUpdated)
