"""Every text gets an answer, never a crash; `bench/fuzz.py` runs longer."""

from pathlib import Path

from hypothesis import given, settings

from services.analyzer.tests.support.fuzzing import check
from services.analyzer.tests.support.mutations import snippets, texts

PROGRAMS = snippets(Path(__file__).parent.parent)


def test_there_are_programs_to_damage() -> None:
    assert len(PROGRAMS) > 300


@given(texts(PROGRAMS))
@settings(max_examples=6 * settings().max_examples, derandomize=True)
def test_a_damaged_program_is_analysed_or_refused_with_a_place_in_it(text: str) -> None:
    check(text)
