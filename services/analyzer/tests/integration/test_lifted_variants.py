"""A program that is lifted from others behaves as each of them, tested on generated programs."""

import json
import random
from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import JsonValue

from pml_analysis.analysis import Analysis, analyze
from pml_analysis.capability_reading import shape_of
from pml_analysis.variants import LiftedVariants, NotLiftable, lift_variants
from pml_common.contracts.decision import Policy
from services.analyzer.tests.generated.trial import generate, written
from services.analyzer.tests.support.programs import TOOLS
from services.analyzer.tests.support.recorder import Outcome, run

pytestmark = pytest.mark.integration

PROGRAMS = 60
SEED = 11
HANDED_IN = ("a", "free", "s", "n", "list", "none", "o")
"""The arguments that the recorder passes to every program."""

TRUE: Sequence[JsonValue] = ("b", "fs", 7, True)
FALSE: Sequence[JsonValue] = ("", 0, False)
"""Other values of literals: those that are true stay so, or most loops would not end."""
LISTS: Sequence[JsonValue] = (["x"], [], [1, "a"])


def test_a_lifted_program_behaves_as_each_of_those_it_was_lifted_from() -> None:
    dice = random.Random(SEED)  # noqa: S311 - no secret
    pairs: list[tuple[str, str]] = []
    for choices in generate(PROGRAMS, seed_=SEED):
        sources = [code := written(choices), _varied(code, dice), _varied(code, dice)]
        lifted = _lifted(sources)
        if lifted is None or not lifted.parameters or {*lifted.parameters} & {*HANDED_IN}:
            continue
        runs = _instrumented(lifted.code)
        pairs.append((_instrumented(code), runs))
        for source, passed in zip(sources, lifted.arguments, strict=True):
            pairs.append(
                (_instrumented(source), f"args={{...args,...{json.dumps(passed)}}};{runs}")
            )
    assert len(pairs) > PROGRAMS / 5
    outcomes = run([code for pair in pairs for code in pair])
    for at, pair in enumerate(pairs):
        before, after = outcomes[2 * at : 2 * at + 2]
        assert _done(before) == _done(after), "\n".join(pair)


def _varied(code: str, dice: random.Random) -> str:
    """Replace some literals of a program."""
    shape = shape_of(code)
    assert shape is not None
    varied = code
    for literal in reversed(shape.literals):
        if dice.random() < 0.5:
            node, value = literal.node, literal.value
            others = LISTS if isinstance(value, list) else TRUE if value else FALSE
            varied = varied[: node.start] + json.dumps(dice.choice(others)) + varied[node.end :]
    return varied


def _lifted(sources: Sequence[str]) -> LiftedVariants | None:
    if any(isinstance(_read(source), Exception) for source in sources):
        return None
    try:
        return lift_variants(sources)
    except NotLiftable:
        return None


def _read(code: str) -> Analysis | ValueError:
    analysis = analyze(code, tools=TOOLS, policy=Policy())
    return analysis if isinstance(analysis, Analysis) else ValueError(analysis.diagnostics)


def _instrumented(code: str) -> str:
    analysis = _read(code)
    assert isinstance(analysis, Analysis), code
    return analysis.instrumented


def _done(outcome: Outcome) -> dict[str, Any]:
    """Return the behaviour of a program, without the places and texts that the engine puts into its
    errors, and without the texts of cases."""
    assert not isinstance(outcome, str), outcome
    end = outcome["end"]
    error = end.get("error", {})
    told = error.get("name") if error.get("name") == "TypeError" else json.dumps(end)
    path = [(node, str(outcome).partition(":")[0]) for node, outcome in outcome["path"]]
    return {"calls": outcome["calls"], "path": path, "end": told}
