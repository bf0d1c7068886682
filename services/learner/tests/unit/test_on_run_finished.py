"""Learning from a delivered run, and from one delivered again."""

import asyncio
from typing import TypeGuard

from pml_common.contracts.base import Message
from pml_common.contracts.learner import LearningUpdated, ListTraces
from pml_learner.adapters.memory_traces import MemoryTraceStore
from pml_learner.domain.temporal_difference import TdRule
from pml_learner.handlers.on_list_traces import on_list_traces
from pml_learner.handlers.on_run_finished import on_run_finished
from services.learner.tests.runs import SCOPE, call, finished


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


def _is_update(fact: Message) -> TypeGuard[LearningUpdated]:
    return isinstance(fact, LearningUpdated)
