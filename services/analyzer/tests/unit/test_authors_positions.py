"""Positions in a text with insertions, and insertions of two edits."""

from hypothesis import given
from hypothesis import strategies as st

from pml_analysis.syntax.edits import Edited, Wrap, apply, composed
from pml_analysis.syntax.source import Position, Source

TEXT = "one two\nthree"
LETTERS = st.text("ab\n😀", max_size=12)
PLACES = st.lists(st.integers(0, 12), max_size=4)


def inserted(text: str, places: list[int], what: str) -> Edited:
    return apply(text, [Wrap(at, at, what) for at in sorted(places) if at <= len(text)])


def without(edited: Edited) -> str:
    kept, at = "", 0
    for start, end in edited.insertions:
        kept += edited.text[at:start]
        at = end
    return kept + edited.text[at:]


def test_positions_are_those_of_the_text_without_what_was_inserted() -> None:
    source = Source(*inserted(TEXT, [4, 8], "[new]"))
    assert source.text == "one [new]two\n[new]three"
    assert source.position(source.text.index("two")) == Position(1, 5)
    assert source.position(source.text.index("new")) == Position(1, 5)
    assert source.position(source.text.index("three")) == Position(2, 1)
    assert source.line(1) == "one two"
    assert source.at(Position(2, 6)) == source.text.index("three")
    assert source.offset(2, 5) == source.text.index("three")


@given(LETTERS, PLACES)
def test_every_character_of_the_author_has_its_position(text: str, places: list[int]) -> None:
    edited = inserted(text, places, "<>")
    source, authors = Source(*edited), Source(text)
    spans = edited.insertions
    kept = [
        at for at in range(len(edited.text)) if not any(start <= at < end for start, end in spans)
    ]
    assert [source.position(at) for at in kept] == [authors.position(n) for n in range(len(text))]


@given(LETTERS, PLACES, PLACES)
def test_without_the_insertions_of_both_edits_the_text_is_the_first(
    text: str, first: list[int], second: list[int]
) -> None:
    once = inserted(text, first, "<()>")
    twice = composed(inserted(once.text, second, "[]"), once.insertions)
    assert without(twice) == text
    assert all(start < end for start, end in twice.insertions)
    ends = [end for _, end in twice.insertions]
    assert all(end <= start for end, (start, _) in zip(ends, twice.insertions[1:], strict=False))
