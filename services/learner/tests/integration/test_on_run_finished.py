"""Learning from a delivered and from a redelivered run."""

import asyncio
from collections.abc import Sequence
from typing import TypeGuard
from uuid import uuid4

import pytest

from libs.pml_common.tests.support.measured import measured
from pml_common.contracts import ids
from pml_common.contracts.base import Message
from pml_common.contracts.executor import RunFinished
from pml_common.contracts.learner import EdgesObserved, LearningUpdated, ListTraces
from pml_common.contracts.uses import UsesObserved
from pml_common.telemetry import metrics
from pml_learner.domain.batch import capabilities_of
from pml_learner.domain.temporal_difference import TdRule
from pml_learner.entrypoints.bus.on_list_traces import on_list_traces
from pml_learner.entrypoints.bus.on_run_finished import on_runs_finished
from pml_learner.ports import TraceStore
from services.learner.tests.support.builders import (
    CODE_HASH,
    SCOPE,
    STARTED_AT,
    finished_run,
    nested_run,
    tool_call,
)
from services.learner.tests.support.ended_runs import lessons_in_turn

pytestmark = pytest.mark.integration


async def on_run_finished(run: RunFinished, traces: TraceStore, rule: TdRule) -> Sequence[Message]:
    """Handle a batch of one run."""
    return (await on_runs_finished([run], traces, rule)).facts.get(run.event_id, ())


async def test_a_redelivered_run_publishes_the_same_and_learns_nothing(
    trace_store: TraceStore,
) -> None:
    run = finished_run(calls=[tool_call("fs:stat", 0, 1), tool_call("fs:read", 2, 3)])
    messages = await on_run_finished(run, trace_store, TdRule())
    await on_run_finished(finished_run(), trace_store, TdRule())
    assert await on_run_finished(run, trace_store, TdRule()) == messages
    page = await on_list_traces(ListTraces(scope=SCOPE), trace_store)
    assert page.total == 2


async def test_what_is_learned_and_how_late_is_measured(trace_store: TraceStore) -> None:
    run = finished_run()
    with measured() as m:
        await on_runs_finished([run, finished_run()], trace_store, TdRule())
        await on_run_finished(run, trace_store, TdRule())
        counted = metrics.LEARNED.samples[0]
        assert m.value(counted, pml_outcome="learned") == 2
        assert m.value(counted, pml_outcome="repeated") == 1
        assert m.value(f"{metrics.LEARNER_LAG.prometheus_name}_count") == 1


async def test_a_dry_runs_trace_is_stored_and_nothing_is_learned(trace_store: TraceStore) -> None:
    run = finished_run(calls=[tool_call("fs:stat", 0, 1), tool_call("fs:read", 2, 3)], dry_run=True)
    assert await on_run_finished(run, trace_store, TdRule()) == ()
    (kept,) = (await on_list_traces(ListTraces(scope=SCOPE), trace_store)).traces
    assert (kept.dry_run, kept.priority) == (True, 0.0)
    (update, *_) = await on_run_finished(finished_run(), trace_store, TdRule())
    assert _is_update(update)
    assert update.revision == 1


async def test_runs_of_one_capability_at_once_are_all_learned(trace_store: TraceStore) -> None:
    said = await asyncio.gather(
        *(on_run_finished(finished_run(), trace_store, TdRule()) for _ in range(9))
    )
    revisions = [
        message.revision for messages in said for message in messages if _is_update(message)
    ]
    assert sorted(revisions) == list(range(1, 10))


async def test_called_capabilities_learn_from_their_own_part(trace_store: TraceStore) -> None:
    workflow = uuid4()
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

    messages = await on_run_finished(run, trace_store, TdRule())

    updates = {message.capability_id: message for message in messages if _is_update(message)}
    assert len(updates) == len([message for message in messages if _is_update(message)]) == 3
    learned = updates[again.capability.capability_id]
    assert (learned.revision, learned.usage.count, learned.usage.success_count) == (2, 2, 1)
    assert (learned.trace_id, updates[run.capability.capability_id].revision) == (
        again.trace_id,
        1,
    )
    (edges,) = [message for message in messages if isinstance(message, EdgesObserved)]
    assert edges.edges == (), "calls of different callers are in no sequence"
    called = [(call.from_capability_id, call.to_capability_id) for call in edges.calls]
    own, first_id, deep_id = (each.capability.capability_id for each in (run, first, deep))
    assert sorted(called) == sorted([(own, first_id), (own, deep_id), (first_id, deep_id)])
    assert {(each.from_, each.to) for each in edges.relations if each.type == "contains"} == {
        (str(own), "c:z"),
        (str(first_id), "a:x"),
        (str(deep_id), "b:y"),
    }
    page = await on_list_traces(ListTraces(scope=SCOPE, workflow_id=workflow), trace_store)
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
    assert await on_run_finished(run, trace_store, TdRule()) == messages


async def test_a_capability_that_calls_itself_learns_from_both(trace_store: TraceStore) -> None:
    workflow = uuid4()
    itself = nested_run(ids.root_trace_id(workflow), CODE_HASH)
    (update, _) = await on_run_finished(
        finished_run(nested=[itself], workflow_id=workflow), trace_store, TdRule()
    )
    assert _is_update(update)
    assert (update.revision, update.usage.count) == (2, 2)


def _is_update(message: Message) -> TypeGuard[LearningUpdated]:
    return isinstance(message, LearningUpdated)


async def test_of_a_batch_each_capability_is_published_once_with_its_last_run(
    trace_store: TraceStore,
) -> None:
    calls = [tool_call("fs:stat", 0, 1), tool_call("fs:read", 2, 3)]
    runs = [finished_run(calls=calls, success=number != 1) for number in range(4)]
    other = finished_run(code_hash="cd34" * 16)
    facts = (await on_runs_finished([*runs[:3], other, runs[3]], trace_store, TdRule())).facts
    assert set(facts) == {runs[3].event_id, other.event_id}
    updated, edges, _ = facts[runs[3].event_id]
    assert _is_update(updated)
    assert (updated.revision, updated.usage.count, updated.usage.success_count) == (4, 4, 3)
    assert (updated.trace_id, updated.workflow_id) == (runs[3].trace_id, runs[3].workflow_id)
    assert isinstance(edges, EdgesObserved)
    assert (edges.runs, [edge.count for edge in edges.edges]) == (4, [4])
    assert edges.workflow_id == runs[3].workflow_id
    (of_other,) = facts[other.event_id]
    assert _is_update(of_other)
    assert (of_other.revision, of_other.capability_id) == (1, other.capability.capability_id)
    assert (await on_list_traces(ListTraces(scope=SCOPE), trace_store)).total == 5


async def test_a_batch_teaches_what_its_runs_teach_one_after_the_other(
    trace_store: TraceStore,
) -> None:
    runs = [
        finished_run(success=number % 3 != 0, duration_ms=number, started_at=STARTED_AT + number)
        for number in range(1, 9)
    ]
    await on_runs_finished(runs, trace_store, TdRule())
    expected = lessons_in_turn(runs, TdRule())
    page = await on_list_traces(ListTraces(scope=SCOPE), trace_store)
    assert list(reversed(page.traces)) == [lesson.trace for lesson in expected]
    async with trace_store.batch([uuid4()], "another") as batch:
        (known,) = (await batch.experience_of(capabilities_of(runs))).values()
    assert known == expected[-1].experience


async def test_runs_delivered_again_in_another_batch_publish_what_they_did(
    trace_store: TraceStore,
) -> None:
    calls = [tool_call("fs:stat", 0, 1), tool_call("fs:read", 2, 3)]
    runs = [finished_run(calls=calls) for _ in range(6)]
    first = (await on_runs_finished(runs[:4], trace_store, TdRule())).facts
    second = (
        await on_runs_finished([runs[4], runs[0], runs[3], runs[5]], trace_store, TdRule())
    ).facts
    assert second[runs[3].event_id] == first[runs[3].event_id]
    (updated, edges, _) = second[runs[5].event_id]
    assert _is_update(updated)
    assert (updated.usage.count, isinstance(edges, EdgesObserved) and edges.runs) == (6, 2)
    assert not second.get(runs[0].event_id)
    assert (await on_list_traces(ListTraces(scope=SCOPE), trace_store)).total == 6


async def test_dry_runs_in_a_batch_change_nothing_that_is_published(
    trace_store: TraceStore,
) -> None:
    calls = [tool_call("fs:stat", 0, 1), tool_call("fs:read", 2, 3)]
    real = finished_run(calls=calls)
    before, after = (finished_run(calls=calls, dry_run=True) for _ in range(2))
    handled = await on_runs_finished([before, real, after], trace_store, TdRule())
    assert [cause for cause, facts in handled.facts.items() if facts] == [real.event_id]
    (updated, edges, _) = handled.facts[real.event_id]
    assert _is_update(updated)
    assert (updated.revision, isinstance(edges, EdgesObserved) and edges.runs) == (1, 1)


async def test_a_redelivered_run_publishes_the_same_uses(trace_store: TraceStore) -> None:
    runs = [finished_run(calls=[tool_call("fs:read", 0, 1)]) for _ in range(2)]
    facts = (await on_runs_finished(runs, trace_store, TdRule())).facts
    (once,) = _uses([message for messages in facts.values() for message in messages])
    assert [use.workflow_id for use in once.uses] == [run.workflow_id for run in runs]
    again = (await on_runs_finished([runs[1]], trace_store, TdRule())).facts
    assert _uses(again[runs[1].event_id]) == [once]


def _uses(messages: Sequence[Message]) -> list[UsesObserved]:
    return [each for each in messages if isinstance(each, UsesObserved)]
