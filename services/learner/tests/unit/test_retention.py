"""Deletion of old traces."""

from datetime import UTC, datetime, timedelta
from unittest.mock import create_autospec

import pytest
from pydantic import ValidationError

from pml_common.bus.clock import ManualClock
from pml_common.contracts.scope import Scope
from pml_common.testing.memory_broker import MemoryBroker
from pml_common.testing.memory_bus import MemoryBus
from pml_learner.app import make_months
from pml_learner.domain.retention import month_of
from pml_learner.ports import TraceStore
from pml_learner.settings import LearnerSettings
from services.learner.tests.support.builders import ELSEWHERE, SCOPE

OTHER = Scope(org="acme", project="shop")


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
    traces = create_autospec(TraceStore, instance=True)
    began = datetime(2026, 12, 31, 23, tzinfo=UTC)
    await make_months(MemoryBus(MemoryBroker(ManualClock(began))), traces)
    (made,) = traces.make_room.await_args.args
    months = [month_of(datetime.fromtimestamp(at / 1000, UTC)) for at in made]
    assert months == [(2026, 12), (2027, 1)]
