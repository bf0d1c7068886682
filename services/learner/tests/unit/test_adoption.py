"""Values of processes that know no positions, as the state that stands for them."""

import pytest

from pml_common.contracts.capability import Learning, Usage
from pml_learner.domain.stored_state import adopted
from services.learner.tests.support.builders import READ
from services.learner.tests.support.outcomes import HOUR, OLD_LEARNING, outcome, taught

OLD_USAGE = Usage(count=2, success_count=2, success_streak=2, mean_duration_ms=12.0)


def test_a_path_that_never_failed_is_worth_1_without_the_value_it_began_from() -> None:
    state = adopted(OLD_USAGE, OLD_LEARNING)
    assert state.paths[READ].estimate.value == pytest.approx(1.0)
    assert state.outcomes["d1", "true"].value == pytest.approx(0.0)
    assert (state.overall.value, state.overall.seen, state.counts.runs) == (1.0, 2, 2)
    assert adopted(Usage(), Learning()).overall.interval() == (0.0, 1.0)


def test_what_nobody_knows_who_taught_yields_to_what_is_known() -> None:
    old = Usage(count=90, success_count=90, success_streak=90)
    state = adopted(old, Learning())
    values = list[float]()
    for number in range(20):
        state = taught([outcome(success=False, hour=HOUR + number // 5)], state)
        values.append(state.overall.value)
    assert values == pytest.approx([1 - number / 20 for number in range(1, 21)])
    assert len(state.overall.voices) == 1
