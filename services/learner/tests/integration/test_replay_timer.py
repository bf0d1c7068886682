"""Replay of stored runs."""

import random

import pytest

from pml_common.contracts.executor import RunFinished
from pml_common.contracts.learner import ListTraces
from pml_learner.application.replay import Replay
from pml_learner.domain.pauses import Pauses
from pml_learner.domain.replay import ReplayRule
from pml_learner.domain.temporal_difference import TdRule
from pml_learner.entrypoints.bus.on_run_finished import on_runs_finished
from pml_learner.ports import TraceStore
from services.learner.tests.support.builders import ELSEWHERE, SCOPE, STARTED_AT, finished_run

pytestmark = pytest.mark.integration


def runs_of(code: str, ends: str) -> list[RunFinished]:
    """Build runs of a capability; `+` succeeded, `-` failed."""
    return [
        finished_run(success=end == "+", code_hash=code * 32, started_at=STARTED_AT + number)
        for number, end in enumerate(ends)
    ]


async def priorities(store: TraceStore, code: str) -> list[float]:
    """Return those of a capability's traces, the oldest first."""
    capability_id = runs_of(code, "+")[0].capability.capability_id
    page = await store.traces(ListTraces(scope=SCOPE, capability_id=capability_id))
    return [trace.priority for trace in reversed(page.traces)]


def replay_of(store: TraceStore, pauses: Pauses | None = None) -> Replay:
    dice = random.Random(7)  # noqa: S311 - not for secrets
    is_pause = (lambda: pauses.is_one) if pauses else (lambda: True)
    return Replay(store, ReplayRule(), dice, is_pause)


async def test_priorities_follow_the_present_values_whether_replayed_once_or_twice(
    trace_store: TraceStore,
) -> None:
    await on_runs_finished(runs_of("ab", "+" * 9 + "-"), trace_store, TdRule())
    before = await priorities(trace_store, "ab")
    assert before[0] == 1.0  # a new path then
    replay = replay_of(trace_store)
    assert 0 < await replay.refresh_some(500) <= 10
    after = await priorities(trace_store, "ab")
    assert after[0] < 0.5 < after[-1] < 1
    assert len(set(after[:-1])) == 1  # all that succeeded are as surprising now
    assert await replay.refresh_some(500) == 0  # there is no other capability
    assert await replay.refresh_some(500) > 0
    assert await priorities(trace_store, "ab") == after


async def test_capabilities_take_turns_and_dry_runs_have_none(trace_store: TraceStore) -> None:
    await on_runs_finished(runs_of("ab", "+++"), trace_store, TdRule())
    await on_runs_finished(runs_of("cd", "++"), trace_store, TdRule())
    await on_runs_finished(
        [finished_run(code_hash="ef" * 32, dry_run=True), finished_run(scope=ELSEWHERE)],
        trace_store,
        TdRule(),
    )
    replay = replay_of(trace_store)
    done = [await replay.refresh_some(200) for _ in range(4)]
    assert sorted(done) == [0, 1, 2, 3]
    assert done[-1] == 0
    assert await priorities(trace_store, "ef") == [0.0]


async def test_no_past_run_is_looked_at_while_new_ones_come(trace_store: TraceStore) -> None:
    await on_runs_finished(runs_of("ab", "++"), trace_store, TdRule())
    now = [100.0]
    pauses = Pauses(lambda: now[0], 0.5)
    replay = replay_of(trace_store, pauses)
    assert pauses.is_one
    with pauses.live():
        now[0] += 60
        assert await replay.refresh_some(10) == 0
    now[0] += 0.4
    assert await replay.refresh_some(10) == 0
    now[0] += 0.2
    assert await replay.refresh_some(10) > 0


async def test_work_under_way_stops_when_new_runs_come(trace_store: TraceStore) -> None:
    left = [2]
    runs = [finished_run(started_at=STARTED_AT + number) for number in range(200)]
    await on_runs_finished(runs, trace_store, TdRule())

    def pause_ends() -> bool:
        left[0] -= 1
        return left[0] >= 0

    replay = Replay(trace_store, ReplayRule(), random.Random(7), pause_ends)  # noqa: S311
    assert await replay.refresh_some(2000) == 50
