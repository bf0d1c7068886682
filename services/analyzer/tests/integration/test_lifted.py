"""Lifted programs behave as before, tested on generated programs."""

import json
from typing import Any

import pytest
from hypothesis import settings

from pml_analysis.analysis import Analysis, analyze
from pml_analysis.lifted import Lifted, lifted
from pml_common.contracts.decision import Policy
from services.analyzer.tests.generated.trial import generate, written
from services.analyzer.tests.support.programs import TOOLS
from services.analyzer.tests.support.recorder import Outcome, run

pytestmark = pytest.mark.integration

PROGRAMS = settings().max_examples
SEED = 7
HANDED_IN = ("a", "free", "s", "n", "list", "none", "o")
"""The arguments that the recorder passes to every program."""


def test_programs_with_lifted_literals_make_the_same_calls_and_end_alike() -> None:
    pairs: list[tuple[str, str]] = []
    for choices in generate(PROGRAMS, seed_=SEED):
        code = written(choices)
        found = lifted(code, tools=TOOLS, policy=Policy())
        assert isinstance(found, Lifted), code
        if found.parameters and not set(found.parameters) & set(HANDED_IN):
            pairs.append((code, found.code))
    assert len(pairs) > PROGRAMS / 10
    outcomes = run([_instrumented(code) for pair in pairs for code in pair])
    for at, pair in enumerate(pairs):
        before, after = outcomes[2 * at : 2 * at + 2]
        assert _done(before) == _done(after), "\n".join(pair)


def _instrumented(code: str) -> str:
    analysis = analyze(code, tools=TOOLS, policy=Policy())
    assert isinstance(analysis, Analysis)
    return analysis.instrumented


def _done(outcome: Outcome) -> dict[str, Any]:
    """Return the behaviour of a program, without the places and texts that the engine puts into its
    errors."""
    assert not isinstance(outcome, str), outcome
    end = outcome["end"]
    error = end.get("error", {})
    told = error.get("name") if error.get("name") == "TypeError" else json.dumps(end)
    return {"calls": outcome["calls"], "path": outcome["path"], "end": told}
