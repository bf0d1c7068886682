"""The trace store."""

import asyncio
from datetime import UTC, datetime
from typing import TypeGuard
from uuid import UUID, uuid4

import pytest

from pml_common.contracts import ids
from pml_common.contracts.base import Message
from pml_common.contracts.capability import CapabilityIdentity
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.executor import RunFinished
from pml_common.contracts.learner import LearningUpdated, ListTraces
from pml_learner.application.relearning import delete_some
from pml_learner.domain.batch import capabilities_of
from pml_learner.domain.lesson import Experience, learn
from pml_learner.domain.temporal_difference import TdRule
from pml_learner.entrypoints.bus.on_run_finished import on_runs_finished
from pml_learner.ports import TraceStore
from services.learner.tests.support.builders import (
    ELSEWHERE,
    READ,
    SCOPE,
    STARTED_AT,
    finished_run,
    nested_run,
    tool_call,
)

pytestmark = pytest.mark.integration
CONSUMER = "learner-on-run-finished"


async def _learn(store: TraceStore, *runs: RunFinished) -> tuple[Message, ...]:
    handled = await on_runs_finished(runs, store, TdRule())
    return tuple(fact for run in runs for fact in handled.facts.get(run.event_id, ()))


def _is_update(message: Message) -> TypeGuard[LearningUpdated]:
    return isinstance(message, LearningUpdated)


async def _experience(store: TraceStore, run: RunFinished) -> Experience:
    async with store.batch([uuid4()], CONSUMER) as batch:
        (known,) = (await batch.experience_of(capabilities_of([run]))).values()
        return known


async def test_an_unknown_capability_has_no_experience(trace_store: TraceStore) -> None:
    assert await _experience(trace_store, finished_run()) == Experience()


async def test_the_next_run_starts_from_what_was_learned(trace_store: TraceStore) -> None:
    run = finished_run(decisions=[("d1", "true")])
    await _learn(trace_store, run)
    expected = learn(Experience(), run, TdRule()).experience
    assert await _experience(trace_store, run) == expected


async def test_a_dry_run_is_stored_as_one_and_changes_no_experience(
    trace_store: TraceStore,
) -> None:
    await _learn(trace_store, finished_run())
    known = await _experience(trace_store, finished_run())
    assert await _learn(trace_store, finished_run(dry_run=True, started_at=STARTED_AT + 1)) == ()
    assert await _experience(trace_store, finished_run()) == known
    kept = (await trace_store.traces(ListTraces(scope=SCOPE))).traces
    assert [trace.dry_run for trace in kept] == [True, False]


async def test_a_message_handled_again_publishes_the_same_messages(trace_store: TraceStore) -> None:
    run = finished_run(calls=[tool_call("a:x", 0, 1), tool_call("b:y", 2, 3)])
    first = await _learn(trace_store, run)
    assert await _learn(trace_store, run) == first
    assert (await trace_store.traces(ListTraces(scope=SCOPE))).total == 1


async def test_an_error_rolls_back_the_whole_transaction(trace_store: TraceStore) -> None:
    run = finished_run()

    async def fail_midway() -> None:
        async with trace_store.batch([run.event_id], CONSUMER) as batch:
            (before,) = (await batch.experience_of(capabilities_of([run]))).values()
            await batch.save([learn(before, run, TdRule())], {})
            raise RuntimeError("midway")

    with pytest.raises(RuntimeError, match="midway"):
        await fail_midway()
    assert await _experience(trace_store, run) == Experience()
    assert (await trace_store.traces(ListTraces(scope=SCOPE))).total == 0
    await _learn(trace_store, run)
    assert (await trace_store.traces(ListTraces(scope=SCOPE))).total == 1


async def test_twenty_runs_at_once_lose_no_update(trace_store: TraceStore) -> None:
    runs = [finished_run(success=number % 2 == 0) for number in range(20)]
    await asyncio.gather(*(_learn(trace_store, run) for run in runs))
    experience = await _experience(trace_store, runs[0])
    assert (experience.usage.count, experience.usage.success_count) == (20, 10)
    assert sum(stats.count for stats in experience.learning.paths) == 20


async def test_the_runs_that_succeeded_since_a_failure_are_kept(trace_store: TraceStore) -> None:
    for success, streak in ((True, 1), (False, 0), (True, 1), (True, 2)):
        run = finished_run(success=success)
        await _learn(trace_store, run)
        assert (await _experience(trace_store, run)).usage.success_streak == streak


async def test_one_message_delivered_to_two_at_once_counts_once(trace_store: TraceStore) -> None:
    run = finished_run()
    first, second = await asyncio.gather(_learn(trace_store, run), _learn(trace_store, run))
    assert first == second
    assert (await _experience(trace_store, run)).usage.count == 1


async def test_runs_in_one_batch_are_learned_in_their_order(trace_store: TraceStore) -> None:
    runs = [
        finished_run((f"n{number % 3}",), success=number % 2 == 0, started_at=STARTED_AT + number)
        for number in range(12)
    ]
    others = [finished_run(code_hash=f"{number:02}" * 32) for number in range(4)]
    await _learn(trace_store, *runs[:6], *others, *runs[6:])
    expected = Experience()
    for run in runs:
        expected = learn(expected, run, TdRule()).experience
    assert await _experience(trace_store, runs[0]) == expected
    page = await trace_store.traces(
        ListTraces(scope=SCOPE, capability_id=runs[0].capability.capability_id)
    )
    assert [trace.executed_path for trace in page.traces] == [
        run.executed_path for run in reversed(runs)
    ]
    for other in others:
        assert (await _experience(trace_store, other)).usage.count == 1


async def test_batches_that_share_messages_and_capabilities_count_each_run_once(
    trace_store: TraceStore,
) -> None:
    runs = [finished_run(code_hash=f"{number % 3:02}" * 32) for number in range(12)]
    said = await asyncio.gather(
        _learn(trace_store, *runs[:8]),
        _learn(trace_store, *reversed(runs[4:])),
        _learn(trace_store, *runs[2:10]),
    )
    assert sum([(await _experience(trace_store, run)).usage.count for run in runs[:3]]) == 12
    assert (await trace_store.traces(ListTraces(scope=SCOPE))).total == 12
    revisions = {m.capability_id: set[int]() for m in sum(said, ()) if _is_update(m)}
    for message in sum(said, ()):
        if _is_update(message):
            revisions[message.capability_id].add(message.revision)
    assert [max(each) for each in revisions.values()] == [4, 4, 4]


async def test_more_traces_than_fit_into_one_statement_are_stored(trace_store: TraceStore) -> None:
    runs = [finished_run(started_at=STARTED_AT + number) for number in range(203)]
    await _learn(trace_store, *runs)
    assert (await trace_store.traces(ListTraces(scope=SCOPE))).total == 203
    assert (await _experience(trace_store, runs[0])).usage.count == 203


async def test_a_trace_is_read_as_it_was_stored(trace_store: TraceStore) -> None:
    run = finished_run(
        success=False, decisions=[("d1", "true")], calls=[tool_call("a:x", 1.5, 2.25)]
    )
    await _learn(trace_store, run)
    (trace,) = (await trace_store.traces(ListTraces(scope=SCOPE))).traces
    assert trace == learn(Experience(), run, TdRule(), fault="capability").trace


async def test_payloads_preserve_every_character_of_json(trace_store: TraceStore) -> None:
    strange: dict[str, object] = {"nul": "a\x00b", "emoji": "🦆", "deep": [None, 1.5, {"x": ""}]}
    run = RunFinished.model_validate({**finished_run().model_dump(), "result": strange})
    await _learn(trace_store, run)
    (trace,) = (await trace_store.traces(ListTraces(scope=SCOPE))).traces
    assert trace.result == strange


async def test_text_that_postgres_refuses_is_stored_without_its_nul(
    trace_store: TraceStore,
) -> None:
    endless = "dyn:" + "".join(f"{number:x}" for number in range(9000))
    run = RunFinished.model_validate(
        {
            **finished_run(("n1", "dyn:a\x00b", endless), success=False).model_dump(),
            "intent": "read\x00it",
            "principal": "agent\x007",
            "error": WorkflowError(kind="user_error", message="b\x00d"),
        }
    )
    messages = await _learn(trace_store, run)
    assert await _learn(trace_store, run) == messages
    (trace,) = (await trace_store.traces(ListTraces(scope=SCOPE))).traces
    assert trace.intent is not None
    assert trace.intent.startswith("read")
    assert trace.error is not None
    assert trace.error.message == "b\x00d"


async def test_traces_are_listed_newest_first_in_pages(trace_store: TraceStore) -> None:
    runs = [finished_run(started_at=STARTED_AT + number) for number in range(5)]
    for run in reversed(runs):
        await _learn(trace_store, run)
    page = await trace_store.traces(ListTraces(scope=SCOPE, limit=2, offset=1))
    assert [trace.trace_id for trace in page.traces] == [runs[3].trace_id, runs[2].trace_id]
    assert page.total == 5
    beyond = await trace_store.traces(ListTraces(scope=SCOPE, offset=9))
    assert (beyond.traces, beyond.total) == ((), 5)


async def test_traces_are_found_by_capability_and_by_workflow(trace_store: TraceStore) -> None:
    one, other = finished_run(), finished_run(code_hash="cd34" * 16)
    for run in (one, other):
        await _learn(trace_store, run)

    async def found(capability_id: UUID | None, workflow_id: UUID | None) -> list[UUID]:
        query = ListTraces(scope=SCOPE, capability_id=capability_id, workflow_id=workflow_id)
        return [trace.trace_id for trace in (await trace_store.traces(query)).traces]

    assert await found(one.capability.capability_id, None) == [one.trace_id]
    assert await found(None, other.workflow_id) == [other.trace_id]
    assert await found(one.capability.capability_id, other.workflow_id) == []
    assert await found(uuid4(), None) == []


async def test_a_nested_run_is_stored_under_its_parent_and_listed_after_it(
    trace_store: TraceStore,
) -> None:
    workflow = uuid4()
    root = ids.root_trace_id(workflow)
    deep = nested_run(root, "cd" * 32, "n1/dyn:\0x", started_at=STARTED_AT + 9)
    run = finished_run(nested=[deep], workflow_id=workflow)
    await _learn(trace_store, run)
    page = await trace_store.traces(ListTraces(scope=SCOPE, workflow_id=workflow))
    assert [(t.trace_id, t.parent_trace_id, t.name) for t in page.traces] == [
        (root, None, None),
        (deep.trace_id, root, deep.name),
    ]
    of_it = ListTraces(scope=SCOPE, capability_id=deep.capability.capability_id)
    assert (await trace_store.traces(of_it)).total == 1


async def test_no_scope_sees_or_changes_another(trace_store: TraceStore) -> None:
    ours = finished_run()
    shared = CapabilityIdentity(
        capability_id=ours.capability.capability_id, code_hash=ours.capability.code_hash
    )
    theirs = RunFinished.model_validate(
        {**finished_run(READ, scope=ELSEWHERE).model_dump(), "capability": shared}
    )
    await _learn(trace_store, ours)
    await _learn(trace_store, theirs)
    assert (await _experience(trace_store, ours)).usage.count == 1
    query = ListTraces(scope=ELSEWHERE, capability_id=shared.capability_id)
    assert [t.trace_id for t in (await trace_store.traces(query)).traces] == [theirs.trace_id]
    query = ListTraces(scope=SCOPE, workflow_id=theirs.workflow_id)
    assert (await trace_store.traces(query)).total == 0


async def test_old_traces_are_deleted_with_their_workflow_and_what_was_learned_stays(
    trace_store: TraceStore,
) -> None:
    workflow, day_ms = uuid4(), 86_400_000.0
    inner = nested_run(
        ids.root_trace_id(workflow), "cd" * 32, "n1/dyn:x", started_at=STARTED_AT + day_ms
    )
    old = finished_run(nested=[inner], workflow_id=workflow)
    other = finished_run(started_at=STARTED_AT + 1, scope=ELSEWHERE)
    new = finished_run(started_at=STARTED_AT + 2 * day_ms)
    await _learn(trace_store, old, other, new)
    experience = await _experience(trace_store, new)
    before = datetime.fromtimestamp((STARTED_AT + day_ms / 2) / 1000, UTC)
    assert sorted(await trace_store.scopes(), key=str) == [SCOPE, ELSEWHERE]
    for scope in (SCOPE, ELSEWHERE):
        assert await delete_some(trace_store, scope, before, 1, TdRule()) == 1
        assert await delete_some(trace_store, scope, before, 1, TdRule()) == 0
    left = [
        trace.workflow_id
        for scope in (SCOPE, ELSEWHERE)
        for trace in (await trace_store.traces(ListTraces(scope=scope))).traces
    ]
    assert left == [new.workflow_id]
    now = await _experience(trace_store, new)
    assert (now.state, now.base_position) == (experience.state, 1)
