"""Values as a fold over stored traces: live learning, rebuilds, bases."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from uuid import UUID, uuid4

import pytest
from typing_extensions import override

from pml_common.contracts.learner import LearningUpdated, ListTraces
from pml_common.storage.scoped import ScopedPools
from pml_common.testing.memory_bus import MemoryBus
from pml_learner.adapters.postgres_learning import PostgresRelearning
from pml_learner.adapters.postgres_traces import PostgresTraceStore
from pml_learner.application.relearning import (
    delete_workflow,
    fold_away,
    publish_rebuilt,
    rebuild_step,
    relearn_stale,
)
from pml_learner.domain.batch import capabilities_of
from pml_learner.domain.lesson import Experience, ScopedCapability
from pml_learner.domain.temporal_difference import TdRule
from pml_learner.entrypoints.bus.on_run_finished import on_runs_finished
from pml_learner.ports import TraceStore
from services.learner.tests.support.builders import (
    SCOPE,
    finished_run,
)
from services.learner.tests.support.ended_runs import lessons_in_turn, runs_of_every_kind

pytestmark = pytest.mark.integration

RULE, NEXT_RULE = TdRule(), TdRule(alpha=0.5, version=2)
CAPABILITY = SCOPE, finished_run().capability.capability_id


async def _learned(store: TraceStore) -> Experience:
    async with store.batch([uuid4()], "another") as batch:
        (known,) = (await batch.experience_of(capabilities_of([finished_run()]))).values()
        return known


async def _rebuild(store: TraceStore, rule: TdRule = RULE, limit: int = 7) -> tuple[int, int]:
    """Rebuild the one capability; return the numbers of steps and of traces that were missing."""
    steps = 0
    while True:
        steps += 1
        stepped = await rebuild_step(store, CAPABILITY, rule, limit)
        assert stepped is not None
        if stepped[0].is_done:
            return steps, stepped[0].missing


async def _stored(store: TraceStore) -> list[tuple[int, UUID]]:
    page = await store.traces(ListTraces(scope=SCOPE, limit=200))
    return sorted((each.position or 0, each.trace_id) for each in page.traces)


async def test_traces_have_positions_without_gaps_and_faults(trace_store: TraceStore) -> None:
    runs = runs_of_every_kind(12)
    for batch in (runs[:5], runs[5:6], runs[6:]):
        await on_runs_finished([*batch, finished_run(dry_run=True)], trace_store, RULE)
    page = await trace_store.traces(ListTraces(scope=SCOPE, limit=50))
    told = {each.trace_id: (each.position, each.fault) for each in page.traces if not each.dry_run}
    assert [told[run.trace_id][0] for run in runs] == list(range(1, 13))
    assert [told[run.trace_id][1] for run in runs if not run.success] == [
        "capability",
        "caller",
        "capability",
    ]
    assert {each.position for each in page.traces if each.dry_run} == {None}


async def test_a_rebuild_gives_what_live_learning_gave(trace_store: TraceStore) -> None:
    await on_runs_finished(runs_of_every_kind(40), trace_store, RULE)
    before = await _learned(trace_store)
    assert await _rebuild(trace_store) == (6, 0)
    assert await _learned(trace_store) == before
    assert await _rebuild(trace_store, limit=100) == (1, 0)


async def test_live_learning_goes_on_between_the_steps_of_a_rebuild(
    trace_store: TraceStore,
) -> None:
    runs = runs_of_every_kind(40)
    await on_runs_finished(runs[:30], trace_store, RULE)
    first = await rebuild_step(trace_store, CAPABILITY, RULE, 7)
    assert first is not None
    assert not first[0].is_done
    await on_runs_finished(runs[30:], trace_store, RULE)
    await _rebuild(trace_store)
    alone = lessons_in_turn(runs, RULE)[-1].experience
    assert (await _learned(trace_store)).state == alone.state


async def test_runs_and_rebuilds_at_once_lose_nothing(trace_store: TraceStore) -> None:
    runs = runs_of_every_kind(30)
    await asyncio.gather(
        *(
            on_runs_finished(runs[start : start + 3], trace_store, RULE)
            for start in range(0, 30, 3)
        ),
        *(_try_step(trace_store) for _ in range(6)),
    )
    live = await _learned(trace_store)
    assert (live.usage.count, live.position) == (30, 30)
    await _rebuild(trace_store)
    assert (await _learned(trace_store)).state == live.state


async def _try_step(store: TraceStore) -> None:
    await rebuild_step(store, CAPABILITY, RULE, 5)


async def test_what_other_rules_taught_is_rebuilt_before_anything_is_learned_by_new_ones(
    trace_store: TraceStore,
) -> None:
    runs, bus = runs_of_every_kind(20), MemoryBus()
    await on_runs_finished(runs[:12], trace_store, RULE)
    old = await _learned(trace_store)
    handled = await on_runs_finished(runs[12:], trace_store, NEXT_RULE)
    waiting = await _learned(trace_store)
    assert (waiting.state, waiting.position) == (old.state, 20)  # stored, and not mixed
    assert not any(_updates(list(facts)) for facts in handled.facts.values())
    assert await trace_store.stale(RULE.version, 9) == [CAPABILITY]
    await relearn_stale(bus, trace_store, NEXT_RULE)
    alone = lessons_in_turn(runs, NEXT_RULE)[-1].experience
    learned = await _learned(trace_store)
    assert (learned.state, learned.rule_version) == (alone.state, 2)
    (updated,) = _updates([each.message for each in await bus.history(SCOPE, str(CAPABILITY[1]))])
    assert (updated.revision, updated.usage) == (learned.revision, learned.usage)
    assert (updated.trace_id, learned.revision) == (runs[-1].trace_id, 21)
    assert await trace_store.stale(NEXT_RULE.version, 9) == []
    await relearn_stale(bus, trace_store, NEXT_RULE)
    await publish_rebuilt(bus, trace_store, CAPABILITY, NEXT_RULE)
    assert len(await bus.history(SCOPE, str(CAPABILITY[1]))) == 1
    late = finished_run()
    (message,) = _updates(
        list((await on_runs_finished([late], trace_store, NEXT_RULE)).facts[late.event_id])
    )
    assert message.revision == 22


def _updates(messages: Sequence[object]) -> list[LearningUpdated]:
    return [each for each in messages if isinstance(each, LearningUpdated)]


async def test_an_older_learner_stores_traces_and_leaves_the_newer_rules_alone(
    trace_store: TraceStore,
) -> None:
    await on_runs_finished(runs_of_every_kind(4), trace_store, NEXT_RULE)
    newer = await _learned(trace_store)
    await on_runs_finished([finished_run()], trace_store, RULE)
    assert (await _learned(trace_store)).state == newer.state
    assert await trace_store.stale(RULE.version, 9) == []
    await relearn_stale(MemoryBus(), trace_store, NEXT_RULE)
    assert (await _learned(trace_store)).state.counts.runs == 5


async def test_traces_in_a_base_may_go_and_what_they_taught_stays(trace_store: TraceStore) -> None:
    runs = runs_of_every_kind(30)
    await on_runs_finished(runs, trace_store, RULE)
    live = await _learned(trace_store)
    for _ in range(2):
        await fold_away(trace_store, CAPABILITY, 20, RULE, limit=6)
    assert (await _learned(trace_store)).base_position == 20
    await trace_store.remove(SCOPE, [run.workflow_id for run in runs[:20]])
    assert [position for position, _ in await _stored(trace_store)] == list(range(21, 31))
    assert await _rebuild(trace_store) == (2, 0)
    assert (await _learned(trace_store)).state == live.state
    await fold_away(trace_store, CAPABILITY, 10, RULE)
    await fold_away(trace_store, CAPABILITY, 30, RULE)
    await trace_store.remove(SCOPE, [run.workflow_id for run in runs])
    assert await _rebuild(trace_store, NEXT_RULE) == (1, 0)  # by other rules: a base stays
    again = await _learned(trace_store)
    assert (again.state, again.base_position) == (live.state, 30)


async def test_a_deleted_workflow_stays_in_what_was_learned_and_one_deleted_before_never_enters(
    trace_store: TraceStore,
) -> None:
    runs = runs_of_every_kind(9)
    await on_runs_finished(runs[:8], trace_store, RULE)
    live = await _learned(trace_store)
    await delete_workflow(trace_store, SCOPE, runs[4].workflow_id, RULE)
    await delete_workflow(trace_store, SCOPE, runs[8].workflow_id, RULE)
    await on_runs_finished(runs[8:], trace_store, RULE)
    assert (await _learned(trace_store)).base_position == 5
    assert await _rebuild(trace_store) == (1, 0)
    assert (await _learned(trace_store)).state == live.state


async def test_lost_traces_leave_what_was_learned_and_are_told(trace_store: TraceStore) -> None:
    runs = runs_of_every_kind(9)
    await on_runs_finished(runs, trace_store, RULE)
    live = await _learned(trace_store)
    await trace_store.remove(SCOPE, [runs[2].workflow_id, runs[7].workflow_id])
    assert await _rebuild(trace_store, NEXT_RULE) == (1, 2)
    learned = await _learned(trace_store)
    assert (learned.state, learned.base_position) == (live.state, 9)
    assert await _rebuild(trace_store) == (1, 0)


async def test_nothing_is_rebuilt_or_published_of_a_capability_that_nobody_knows(
    trace_store: TraceStore,
) -> None:
    bus = MemoryBus()
    assert await rebuild_step(trace_store, CAPABILITY, RULE) is None
    await fold_away(trace_store, CAPABILITY, 5, RULE)
    await publish_rebuilt(bus, trace_store, CAPABILITY, RULE)
    assert await trace_store.capabilities(SCOPE, None, 5) == ([], 0)


class OneUnreadable(PostgresTraceStore):
    """A store in which one capability cannot be read."""

    unreadable: ScopedCapability | None = None

    @override
    @asynccontextmanager
    async def relearning(
        self, capability: ScopedCapability
    ) -> AsyncGenerator[PostgresRelearning | None]:
        if capability == self.unreadable:
            raise ValueError("not a state")
        async with super().relearning(capability) as row:
            yield row


async def test_a_capability_that_cannot_be_rebuilt_holds_up_no_other(
    trace_store: TraceStore, learner_pool: ScopedPools, caplog: pytest.LogCaptureFixture
) -> None:
    store, bus, other = OneUnreadable(learner_pool), MemoryBus(), finished_run(code_hash="cd" * 32)
    await on_runs_finished([finished_run(), other], store, RULE)
    store.unreadable = CAPABILITY
    await relearn_stale(bus, store, NEXT_RULE)
    assert await store.stale(NEXT_RULE.version, 9) == [CAPABILITY]
    assert f"capability {CAPABILITY[1]} is not learned again" in caplog.text
