"""What every trace store promises."""

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
from services.learner.tests.runs import ELSEWHERE, READ, SCOPE, STARTED_AT, call, finished, inside

CONSUMER = "learner-on-run-finished"


async def _learn(store: TraceStore, run: RunFinished) -> tuple[Message, ...]:
    async with store.once(run.event_id, CONSUMER) as handling:
        if handling.replayed is not None:
            return tuple(handling.replayed)
        lesson = learn(await handling.experience_of(run.scope, run.capability), run, TdRule())
        await handling.save(lesson)
        return tuple(handling.conclude(lesson.facts))


async def _experience(store: TraceStore, run: RunFinished) -> Experience:
    async with store.once(uuid4(), CONSUMER) as handling:
        return await handling.experience_of(run.scope, run.capability)


async def test_an_unknown_capability_has_no_experience(trace_store: TraceStore) -> None:
    assert await _experience(trace_store, finished()) == Experience()


async def test_what_was_learned_is_what_the_next_run_starts_from(trace_store: TraceStore) -> None:
    run = finished(decisions=[("d1", "true")])
    await _learn(trace_store, run)
    expected = learn(Experience(), run, TdRule()).experience
    assert await _experience(trace_store, run) == expected


async def test_a_dry_run_is_kept_as_one_and_changes_no_experience(trace_store: TraceStore) -> None:
    await _learn(trace_store, finished())
    known = await _experience(trace_store, finished())
    assert await _learn(trace_store, finished(dry_run=True, started_at=STARTED_AT + 1)) == ()
    assert await _experience(trace_store, finished()) == known
    kept = (await trace_store.traces(ListTraces(scope=SCOPE))).traces
    assert [trace.dry_run for trace in kept] == [True, False]


async def test_a_message_handled_again_states_the_same_facts(trace_store: TraceStore) -> None:
    run = finished(calls=[call("a:x", 0, 1), call("b:y", 2, 3)])
    first = await _learn(trace_store, run)
    assert await _learn(trace_store, run) == first
    assert (await trace_store.traces(ListTraces(scope=SCOPE))).total == 1


async def test_an_error_undoes_the_whole_handling(trace_store: TraceStore) -> None:
    run = finished()

    async def fail_midway() -> None:
        async with trace_store.once(run.event_id, CONSUMER) as handling:
            before = await handling.experience_of(run.scope, run.capability)
            await handling.save(learn(before, run, TdRule()))
            raise RuntimeError("midway")

    with pytest.raises(RuntimeError, match="midway"):
        await fail_midway()
    assert await _experience(trace_store, run) == Experience()
    assert (await trace_store.traces(ListTraces(scope=SCOPE))).total == 0
    await _learn(trace_store, run)
    assert (await trace_store.traces(ListTraces(scope=SCOPE))).total == 1


async def test_twenty_runs_at_once_lose_no_update(trace_store: TraceStore) -> None:
    runs = [finished(success=number % 2 == 0) for number in range(20)]
    await asyncio.gather(*(_learn(trace_store, run) for run in runs))
    experience = await _experience(trace_store, runs[0])
    assert (experience.usage.count, experience.usage.success_count) == (20, 10)
    assert sum(stats.count for stats in experience.learning.paths) == 20


async def test_one_message_delivered_to_two_at_once_counts_once(trace_store: TraceStore) -> None:
    run = finished()
    first, second = await asyncio.gather(_learn(trace_store, run), _learn(trace_store, run))
    assert first == second
    assert (await _experience(trace_store, run)).usage.count == 1


async def test_a_trace_comes_back_as_it_was_kept(trace_store: TraceStore) -> None:
    run = finished(success=False, decisions=[("d1", "true")], calls=[call("a:x", 1.5, 2.25)])
    await _learn(trace_store, run)
    (trace,) = (await trace_store.traces(ListTraces(scope=SCOPE))).traces
    assert trace == learn(Experience(), run, TdRule()).trace


async def test_payloads_keep_every_character_json_can_hold(trace_store: TraceStore) -> None:
    strange: dict[str, object] = {"nul": "a\x00b", "emoji": "🦆", "deep": [None, 1.5, {"x": ""}]}
    run = RunFinished.model_validate({**finished().model_dump(), "result": strange})
    await _learn(trace_store, run)
    (trace,) = (await trace_store.traces(ListTraces(scope=SCOPE))).traces
    assert trace.result == strange


async def test_text_that_postgres_refuses_is_kept_without_its_nul(trace_store: TraceStore) -> None:
    endless = "dyn:" + "".join(f"{number:x}" for number in range(9000))
    run = RunFinished.model_validate(
        {
            **finished(("n1", "dyn:a\x00b", endless), success=False).model_dump(),
            "intent": "read\x00it",
            "principal": "agent\x007",
            "error": WorkflowError(kind="user_error", message="b\x00d"),
        }
    )
    facts = await _learn(trace_store, run)
    assert await _learn(trace_store, run) == facts
    (trace,) = (await trace_store.traces(ListTraces(scope=SCOPE))).traces
    assert trace.intent is not None
    assert trace.intent.startswith("read")
    assert trace.error is not None
    assert trace.error.message == "b\x00d"


async def test_traces_are_listed_newest_first_in_pages(trace_store: TraceStore) -> None:
    runs = [finished(started_at=STARTED_AT + number) for number in range(5)]
    for run in reversed(runs):
        await _learn(trace_store, run)
    page = await trace_store.traces(ListTraces(scope=SCOPE, limit=2, offset=1))
    assert [trace.trace_id for trace in page.traces] == [runs[3].trace_id, runs[2].trace_id]
    assert page.total == 5
    beyond = await trace_store.traces(ListTraces(scope=SCOPE, offset=9))
    assert (beyond.traces, beyond.total) == ((), 5)


async def test_traces_are_found_by_capability_and_by_workflow(trace_store: TraceStore) -> None:
    one, other = finished(), finished(code_hash="cd34" * 16)
    for run in (one, other):
        await _learn(trace_store, run)

    async def found(capability_id: UUID | None, workflow_id: UUID | None) -> list[UUID]:
        query = ListTraces(scope=SCOPE, capability_id=capability_id, workflow_id=workflow_id)
        return [trace.trace_id for trace in (await trace_store.traces(query)).traces]

    assert await found(one.capability.capability_id, None) == [one.trace_id]
    assert await found(None, other.workflow_id) == [other.trace_id]
    assert await found(one.capability.capability_id, other.workflow_id) == []
    assert await found(uuid4(), None) == []


async def test_a_run_inside_another_is_kept_under_it_and_listed_after_it(
    trace_store: TraceStore,
) -> None:
    workflow = uuid4()
    root = ids.root_trace_id(workflow)
    deep = inside(root, "cd" * 32, "n1/dyn:\0x", started_at=STARTED_AT + 9)
    run = finished(nested=[deep], workflow_id=workflow)
    await on_run_finished(run, trace_store, TdRule())
    page = await trace_store.traces(ListTraces(scope=SCOPE, workflow_id=workflow))
    assert [(t.trace_id, t.parent_trace_id, t.name) for t in page.traces] == [
        (root, None, None),
        (deep.trace_id, root, deep.name),
    ]
    of_it = ListTraces(scope=SCOPE, capability_id=deep.capability.capability_id)
    assert (await trace_store.traces(of_it)).total == 1


async def test_no_scope_sees_or_moves_another(trace_store: TraceStore) -> None:
    ours = finished()
    shared = CapabilityIdentity(
        capability_id=ours.capability.capability_id, code_hash=ours.capability.code_hash
    )
    theirs = RunFinished.model_validate(
        {**finished(READ, scope=ELSEWHERE).model_dump(), "capability": shared}
    )
    await _learn(trace_store, ours)
    await _learn(trace_store, theirs)
    assert (await _experience(trace_store, ours)).usage.count == 1
    query = ListTraces(scope=ELSEWHERE, capability_id=shared.capability_id)
    assert [t.trace_id for t in (await trace_store.traces(query)).traces] == [theirs.trace_id]
    query = ListTraces(scope=SCOPE, workflow_id=theirs.workflow_id)
    assert (await trace_store.traces(query)).total == 0
