"""Deletion of old traces."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import ValidationError
from typing_extensions import override

from pml_common.bus.clock import ManualClock
from pml_common.bus.memory import MemoryBus
from pml_common.bus.memory_broker import MemoryBroker
from pml_common.contracts.learner import ListTraces
from pml_common.contracts.scope import Scope
from pml_learner.adapters.memory_traces import MemoryTraceStore
from pml_learner.app import delete_old, make_months
from pml_learner.domain.retention import Retention, month_of
from pml_learner.domain.temporal_difference import TdRule
from pml_learner.entrypoints.bus.on_run_finished import on_runs_finished
from pml_learner.settings import LearnerSettings
from services.learner.tests.support.builders import (
    ELSEWHERE,
    SCOPE,
    STARTED_AT,
    finished_run,
)

OTHER = Scope(org="acme", project="shop")


async def test_traces_are_kept_for_so_many_days_by_the_bus_clock() -> None:
    began = datetime.fromtimestamp(STARTED_AT / 1000, UTC)
    traces, keep = MemoryTraceStore(), Retention(timedelta(days=90))
    await on_runs_finished([finished_run() for _ in range(3)], traces, TdRule())

    async def left_after(days: int) -> int:
        bus = MemoryBus(MemoryBroker(ManualClock(began + timedelta(days=days))))
        await delete_old(bus, traces, keep)
        return (await traces.traces(ListTraces(scope=SCOPE))).total

    assert [await left_after(days) for days in (89, 91)] == [3, 0]


def test_a_scope_keeps_its_traces_for_a_time_of_its_own() -> None:
    days = {"acme.webapp": 400.0, "rival.webapp": 8.0}
    retention = LearnerSettings(learner_trace_days_of=days).retention
    now = datetime(2026, 11, 24, tzinfo=UTC)
    kept = [(now - retention.since(scope, now)).days for scope in (SCOPE, ELSEWHERE, OTHER)]
    assert kept == [400, 8, 90]
    longer = retention.kept_longer(now - timedelta(days=90), now)
    assert list(longer.items()) == [(SCOPE, now - timedelta(days=400))]


@pytest.mark.parametrize("days", ['{"acme": 30}', '{"acme.webapp": 6}', '{"a.b.c": 30}'])
def test_a_retention_that_cannot_be_is_refused(days: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PML_LEARNER_TRACE_DAYS_OF", days)
    with pytest.raises(ValidationError, match="learner_trace_days_of"):
        LearnerSettings()


async def test_room_is_made_for_this_month_and_the_next() -> None:
    made: list[float] = []

    class Asked(MemoryTraceStore):
        @override
        async def make_room(self, times: Iterable[float]) -> None:
            made.extend(times)

    began = datetime(2026, 12, 31, 23, tzinfo=UTC)
    await make_months(MemoryBus(MemoryBroker(ManualClock(began))), Asked())
    months = [month_of(datetime.fromtimestamp(at / 1000, UTC)) for at in made]
    assert months == [(2026, 12), (2027, 1)]
