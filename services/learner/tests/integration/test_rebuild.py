"""Rebuilds of a scope in parts."""

from uuid import uuid4

import pytest

from pml_common.bus.errors import QueryFailed
from pml_common.contracts.learner import RebuildLearning, RebuildProgress
from pml_common.testing.memory_bus import MemoryBus
from pml_learner.application.relearning import rebuild_some
from pml_learner.domain.temporal_difference import TdRule
from pml_learner.entrypoints.bus.on_rebuild_learning import on_rebuild_learning
from pml_learner.entrypoints.bus.on_run_finished import on_runs_finished
from pml_learner.ports import TraceStore
from services.learner.tests.support.builders import ELSEWHERE, SCOPE, finished_run

pytestmark = pytest.mark.integration

RULE, NEXT_RULE = TdRule(), TdRule(alpha=0.5, version=2)


async def _learn(store: TraceStore) -> None:
    """Learn of three capabilities, of 25 runs each, and of one elsewhere."""
    hashes = [f"{number}a" * 32 for number in range(3)]
    runs = [
        finished_run(code_hash=code_hash, success=number % 3 > 0)
        for number in range(25)
        for code_hash in hashes
    ]
    await on_runs_finished([*runs, finished_run(scope=ELSEWHERE)], store, RULE)


async def _all(
    store: TraceStore, bus: MemoryBus, rule: TdRule, most: int = 99
) -> list[RebuildProgress]:
    parts = list[RebuildProgress]()
    query = RebuildLearning(scope=SCOPE)
    while len(parts) < most:
        part = await rebuild_some(bus, store, query, rule, limit=4)
        assert part is not None
        parts.append(part)
        if not part.left:
            break
        query = RebuildLearning(scope=SCOPE, after=part.after)
    return parts


async def test_a_scope_is_rebuilt_in_parts_that_say_how_far_they_are(
    trace_store: TraceStore,
) -> None:
    await _learn(trace_store)
    bus = MemoryBus()
    parts = await _all(trace_store, bus, RULE)
    assert [(each.rebuilt, each.left) for each in parts] == [(1, 2), (1, 1), (1, 0)]
    assert sum(each.traces for each in parts) == 75
    assert sum(each.changed + each.missing for each in parts) == 0
    ids, _ = await trace_store.capabilities(SCOPE, None, 9)
    for capability_id in ids:
        assert await bus.history(SCOPE, str(capability_id)) == []


async def test_a_rebuild_that_stopped_is_continued_and_its_changes_are_published_once(
    trace_store: TraceStore,
) -> None:
    await _learn(trace_store)
    bus = MemoryBus()
    (begun,) = await _all(trace_store, bus, NEXT_RULE, most=1)
    assert (begun.rebuilt, begun.changed, begun.traces) == (1, 1, 37)
    rest = await _all(trace_store, bus, NEXT_RULE)
    assert sum(each.changed for each in rest) == 2
    ids, _ = await trace_store.capabilities(SCOPE, None, 9)
    for capability_id in ids:
        (stored,) = await bus.history(SCOPE, str(capability_id))
        assert '"revision":26' in stored.message.model_dump_json()
    (elsewhere,) = await trace_store.stale(NEXT_RULE.version, 9)
    assert elsewhere[0] == ELSEWHERE


async def test_one_capability_is_rebuilt_alone_and_an_unknown_one_is_said_to_be(
    trace_store: TraceStore,
) -> None:
    await _learn(trace_store)
    bus = MemoryBus()
    ids, _ = await trace_store.capabilities(SCOPE, None, 9)
    query = RebuildLearning(scope=SCOPE, capability_id=ids[1])
    done = await on_rebuild_learning(query, bus, trace_store, RULE)
    assert (done.rebuilt, done.traces, done.left) == (1, 25, 0)
    unknown = RebuildLearning(scope=SCOPE, capability_id=uuid4())
    with pytest.raises(QueryFailed, match="it has not run here"):
        await on_rebuild_learning(unknown, bus, trace_store, RULE)
    nothing = await rebuild_some(bus, trace_store, RebuildLearning(scope=SCOPE, after=ids[2]), RULE)
    assert nothing == RebuildProgress(
        rebuilt=0, changed=0, traces=0, missing=0, left=0, after=ids[2]
    )
