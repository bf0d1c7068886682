"""Learning from a delivered and from a redelivered run."""

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
from services.learner.tests.support.builders import (
    CODE_HASH,
    SCOPE,
    STARTED_AT,
    finished_run,
    nested_run,
    tool_call,
)


async def test_a_redelivered_run_publishes_the_same_and_learns_nothing() -> None:
    traces = MemoryTraceStore()
    run = finished_run(calls=[tool_call("fs:stat", 0, 1), tool_call("fs:read", 2, 3)])
    messages = await on_run_finished(run, traces, TdRule())
    await on_run_finished(finished_run(), traces, TdRule())
    assert await on_run_finished(run, traces, TdRule()) == messages
    page = await on_list_traces(ListTraces(scope=SCOPE), traces)
    assert page.total == 2


async def test_a_dry_runs_trace_is_stored_and_nothing_is_learned() -> None:
    traces = MemoryTraceStore()
    run = finished_run(calls=[tool_call("fs:stat", 0, 1), tool_call("fs:read", 2, 3)], dry_run=True)
    assert await on_run_finished(run, traces, TdRule()) == ()
    (kept,) = (await on_list_traces(ListTraces(scope=SCOPE), traces)).traces
    assert (kept.dry_run, kept.priority) == (True, 0.0)
    (update, *_) = await on_run_finished(finished_run(), traces, TdRule())
    assert _is_update(update)
    assert update.revision == 1


async def test_runs_of_one_capability_at_once_are_all_learned() -> None:
    traces = MemoryTraceStore()
    said = await asyncio.gather(
        *(on_run_finished(finished_run(), traces, TdRule()) for _ in range(9))
    )
    revisions = [
        message.revision for messages in said for message in messages if _is_update(message)
    ]
    assert sorted(revisions) == list(range(1, 10))


async def test_called_capabilities_learn_from_their_own_part() -> None:
    traces, workflow = MemoryTraceStore(), uuid4()
    root = ids.root_trace_id(workflow)
    outer, inner = "cd" * 32, "ef" * 32
    first = nested_run(root, outer, "n1", started_at=STARTED_AT + 1)
    deep = nested_run(first.trace_id, inner, "n1/n2", started_at=STARTED_AT + 2)
    again = nested_run(root, inner, "n2", success=False, started_at=STARTED_AT + 3)
    run = finished_run(
        ("n1", "n2"),
        nested=[first, deep, again],
        calls=[
            tool_call("a:x", 0, 1, "n1/n1", first.trace_id),
            tool_call("b:y", 2, 3, "n1/n2/n1", deep.trace_id),
            tool_call("c:z", 4, 5, "n3", root),
        ],
        workflow_id=workflow,
    )

    messages = await on_run_finished(run, traces, TdRule())

    updates = {message.capability_id: message for message in messages if _is_update(message)}
    assert len(updates) == len([message for message in messages if _is_update(message)]) == 3
    learned = updates[again.capability.capability_id]
    assert (learned.revision, learned.usage.count, learned.usage.success_count) == (2, 2, 1)
    assert (learned.trace_id, updates[run.capability.capability_id].revision) == (
        again.trace_id,
        1,
    )
    (edges,) = [message for message in messages if isinstance(message, EdgesObserved)]
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
    assert await on_run_finished(run, traces, TdRule()) == messages


async def test_a_capability_that_calls_itself_learns_from_both() -> None:
    traces, workflow = MemoryTraceStore(), uuid4()
    itself = nested_run(ids.root_trace_id(workflow), CODE_HASH)
    (update,) = await on_run_finished(
        finished_run(nested=[itself], workflow_id=workflow), traces, TdRule()
    )
    assert _is_update(update)
    assert (update.revision, update.usage.count) == (2, 2)


def _is_update(message: Message) -> TypeGuard[LearningUpdated]:
    return isinstance(message, LearningUpdated)
