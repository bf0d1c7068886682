"""Contract of every trace store."""

import asyncio
from uuid import UUID, uuid4

import pytest

from pml_common.contracts import ids
from pml_common.contracts.base import Message
from pml_common.contracts.capability import CapabilityIdentity
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.executor import RunFinished
from pml_common.contracts.learner import ListTraces
from pml_learner.domain.lesson import Experience, learn
from pml_learner.domain.temporal_difference import TdRule
from pml_learner.entrypoints.bus.on_run_finished import on_run_finished
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

CONSUMER = "learner-on-run-finished"


async def _learn(store: TraceStore, run: RunFinished) -> tuple[Message, ...]:
    async with store.once(run.event_id, CONSUMER) as transaction:
        if transaction.replayed is not None:
            return tuple(transaction.replayed)
        lesson = learn(await transaction.experience_of(run.scope, run.capability), run, TdRule())
        await transaction.save(lesson)
        return tuple(transaction.conclude(lesson.messages))


async def _experience(store: TraceStore, run: RunFinished) -> Experience:
    async with store.once(uuid4(), CONSUMER) as transaction:
        return await transaction.experience_of(run.scope, run.capability)


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
        async with trace_store.once(run.event_id, CONSUMER) as transaction:
            before = await transaction.experience_of(run.scope, run.capability)
            await transaction.save(learn(before, run, TdRule()))
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


async def test_one_message_delivered_to_two_at_once_counts_once(trace_store: TraceStore) -> None:
    run = finished_run()
    first, second = await asyncio.gather(_learn(trace_store, run), _learn(trace_store, run))
    assert first == second
    assert (await _experience(trace_store, run)).usage.count == 1


async def test_a_trace_is_read_as_it_was_stored(trace_store: TraceStore) -> None:
    run = finished_run(
        success=False, decisions=[("d1", "true")], calls=[tool_call("a:x", 1.5, 2.25)]
    )
    await _learn(trace_store, run)
    (trace,) = (await trace_store.traces(ListTraces(scope=SCOPE))).traces
    assert trace == learn(Experience(), run, TdRule()).trace


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
    await on_run_finished(run, trace_store, TdRule())
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
