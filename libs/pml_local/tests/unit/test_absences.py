"""Which parts are down, as a stack's events tell."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from pml_local.absences import Absences
from pml_local.events import PartExited, PartReady, PartRestarting, PartStarting, PartStopped
from pml_local.state import PartDown

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def test_a_part_is_down_from_its_first_failure_until_it_is_ready() -> None:
    absences, later = Absences(), NOON + timedelta(seconds=20)
    assert not absences.observe(PartExited("registry", 1, Path("log")), NOON)
    assert absences.observe(PartRestarting("registry", "ended with code 1", 1, 0.1), NOON)
    assert not absences.observe(PartStarting("registry"), NOON)
    assert absences.observe(PartRestarting("registry", "was not ready", 2, 51.2), later)
    assert absences.parts == {
        "registry": PartDown(
            since=NOON,
            reason="was not ready",
            failures=2,
            next_try=later + timedelta(seconds=51.2),
        )
    }
    assert absences.observe(PartReady("registry", 7, 1, 0.3), later)
    assert not absences.observe(PartReady("registry", 7, 1, 0.3), later)
    assert absences.parts == {}


def test_a_part_that_was_stopped_is_not_down() -> None:
    absences = Absences()
    absences.observe(PartRestarting("learner", "ended with code 1", 1, 0.1), NOON)
    absences.observe(PartStopped("learner", 0), NOON)
    assert absences.parts == {}
