"""Positions in a text with insertions, and insertions of two edits."""

from hypothesis import given
from hypothesis import strategies as st

from pml_analysis.syntax.edits import Edited, Replacement, Wrap, apply, composed, overwritten
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


def test_a_replaced_range_keeps_its_length_and_its_lines() -> None:
    edited = overwritten("ab\tc\r\nd(e)", [Replacement(0, 7, "x"), Replacement(8, 9, "long")])
    assert edited == Edited("x   \r\n (long)", ((9, 12),))
    edited = overwritten("a\nb\u2028c", [Replacement(0, 5, "long")])
    assert edited == Edited("long\n \u2028 ", ((1, 4),))
    edited = overwritten("ab", [Replacement(1, 1, "x"), Replacement(2, 2, "y")])
    assert edited == Edited("axby", ((1, 2), (3, 4)))


@given(LETTERS, st.integers(0, 12), st.integers(0, 12), st.text("xyz", max_size=6))
def test_characters_beside_a_replaced_range_keep_their_positions(
    text: str, first: int, second: int, new: str
) -> None:
    start, end = sorted(min(at, len(text)) for at in (first, second))
    edited = overwritten(text, [Replacement(start, end, new)])
    source = Source(*edited, written=text)
    assert len(without(edited)) == len(text)
    assert without(edited)[:start] == text[:start]
    assert without(edited)[end:] == text[end:]
    assert source.authors == text
    assert source.line(1) == Source(text).line(1)
    assert source.position(len(edited.text)) == Source(text).position(len(text))
