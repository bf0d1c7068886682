"""Deletion of old traces."""

from datetime import UTC, datetime, timedelta

from pml_common.bus.clock import ManualClock
from pml_common.bus.memory import MemoryBus
from pml_common.bus.memory_broker import MemoryBroker
from pml_common.contracts.learner import ListTraces
from pml_learner.adapters.memory_traces import MemoryTraceStore
from pml_learner.app import delete_old
from pml_learner.domain.retention import Retention
from pml_learner.domain.temporal_difference import TdRule
from pml_learner.entrypoints.bus.on_run_finished import on_runs_finished
from services.learner.tests.support.builders import SCOPE, STARTED_AT, finished_run


async def test_traces_are_kept_for_so_many_days_by_the_bus_clock() -> None:
    began = datetime.fromtimestamp(STARTED_AT / 1000, UTC)
    traces, keep = MemoryTraceStore(), Retention(timedelta(days=90))
    await on_runs_finished([finished_run() for _ in range(3)], traces, TdRule())

    async def left_after(days: int) -> int:
        bus = MemoryBus(MemoryBroker(ManualClock(began + timedelta(days=days))))
        await delete_old(bus, traces, keep)
        return (await traces.traces(ListTraces(scope=SCOPE))).total

    assert [await left_after(days) for days in (89, 91)] == [3, 0]
