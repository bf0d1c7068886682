"""Undisturbed runs match what was shown, and changed ones do not: a sample of `make bound`."""

import pytest

from pml_analysis.analysis import Analysis, analyze
from pml_common.contracts.decision import Policy
from services.analyzer.tests.support.library import KNOWN
from tests.binding.properties import Judged, Tally, judged_all, tried
from tests.binding.realistic import realistic

pytestmark = pytest.mark.integration

PROGRAMS = 100
SEED = 8


@pytest.fixture(scope="module")
def tally() -> Tally:
    """Tally of the sample: every program analysed, run twice and judged."""
    return tried(PROGRAMS, SEED)


def test_generated_programs_run_undisturbed_and_not_changed(tally: Tally) -> None:
    assert tally.wrong == []


def test_the_sample_shows_something(tally: Tally) -> None:
    assert tally.programs > PROGRAMS * 0.95
    assert tally.bound > PROGRAMS
    assert tally.refused > PROGRAMS


def test_realistic_programs_run_undisturbed_and_not_changed() -> None:
    judged = [
        Judged(one.code, analysis, one.tools, one.args, one.answers)
        for one in realistic()
        if isinstance(
            analysis := analyze(one.code, tools=one.tools, policy=Policy(), capabilities=KNOWN),
            Analysis,
        )
    ]
    tally = judged_all(judged)

    assert tally.wrong == []
    assert tally.programs > 100
    assert tally.bound > 100
