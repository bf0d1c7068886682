"""What holds for every program, seen in a thousand and more that hypothesis made up.

`python -m services.analyzer.tests.generated` tries more of them.
"""

import pytest

from services.analyzer.tests.generated.trial import (
    UNCLEAR,
    Trial,
    generate,
    tried,
    written,
)
from services.analyzer.tests.recorder import run

pytestmark = pytest.mark.integration

PROGRAMS = 2_000
SEED = 20


@pytest.fixture(scope="module")
def trials() -> list[Trial]:
    """Every program, analysed, run as written and instrumented."""
    return tried([written(choices) for choices in generate(PROGRAMS, seed_=SEED)], run)


def test_instrumented_programs_run_as_written_and_their_paths_are_ways_through_the_structure(
    trials: list[Trial],
) -> None:
    assert len(trials) == PROGRAMS
    wrong = [trial for trial in trials if trial.complaint not in (None, *UNCLEAR)]
    assert not wrong, "\n".join(f"{trial.complaint}: {trial.code}" for trial in wrong[:3])


def test_nearly_every_run_can_be_judged_and_most_paths_say_something(trials: list[Trial]) -> None:
    assert sum(trial.complaint in UNCLEAR for trial in trials) <= PROGRAMS / 200
    assert sum(trial.steps > 3 for trial in trials) > PROGRAMS / 2
