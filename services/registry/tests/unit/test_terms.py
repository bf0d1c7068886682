"""Terms and their weights."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml_registry.domain.terms import MAX_TERM_CHARACTERS, as_words, stem, terms_of, weigh

FIELDS = st.lists(st.tuples(st.text(), st.floats(0.1, 5)), max_size=4)


def test_identifiers_are_split_into_words() -> None:
    assert as_words("fs:readTextFile") == "fs read Text File"
    assert as_words("git-hub:create_issue.v2") == "git hub create issue v2"


@pytest.mark.parametrize(
    ("words", "stemmed"),
    [
        (["file", "files", "filed", "filing"], "file"),
        (["query", "queries"], "queri"),
        (["plan", "plans", "planned", "planning"], "plan"),
        (["call", "calls", "called"], "call"),
        (["is", "as"], None),
    ],
)
def test_inflected_words_have_one_stem(words: list[str], stemmed: str | None) -> None:
    for word in words:
        assert stem(word) == (stemmed or word)


def test_terms_are_stems_without_stop_words_and_without_data() -> None:
    endless = "q" * (MAX_TERM_CHARACTERS + 1)
    assert terms_of(f"Read the files of readFile {endless}") == ["read", "file", "read", "file"]


def test_a_word_weighs_more_in_a_heavier_field_and_less_in_a_longer_text() -> None:
    weights = weigh([("read", 3.0), ("mail", 1.0)])
    assert weights["read"] > weights["mail"] > weigh([("mail", 1.0), ("other " * 50, 1.0)])["mail"]


@given(FIELDS)
def test_weights_lie_between_0_and_1(fields: list[tuple[str, float]]) -> None:
    assert all(0.0 < weight < 1.0 for weight in weigh(fields).values())


@given(st.text())
def test_the_terms_of_a_text_can_be_stored(text: str) -> None:
    assert all("\x00" not in term and term.encode() for term in terms_of(text))
