"""Parts of intents."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml_registry.domain.intents import (
    CLAUSE_CANDIDATES,
    MAX_CLAUSES,
    MAX_TERMS,
    WHOLE_CANDIDATES,
    WRITING,
    clauses_of,
    parts_of,
    saves_file,
)


def test_a_simple_intent_is_one_part() -> None:
    (part,) = parts_of("read the files")
    assert (part.text, part.terms, part.limit) == (
        "read the files",
        ("read", "file"),
        WHOLE_CANDIDATES,
    )


def test_a_compound_intent_is_split_into_clauses() -> None:
    parts = parts_of("Read the log, find the errors and mail them. Then stop.")
    assert [part.text for part in parts[1:]] == [
        "Read the log",
        "find the errors",
        "mail them",
        "Then stop",
    ]
    assert {part.limit for part in parts[1:]} == {CLAUSE_CANDIDATES}


def test_words_that_stand_alone_are_no_clauses() -> None:
    assert clauses_of("salt, pepper and oil") == []
    assert clauses_of("compare salt, pepper and oil") == []


@pytest.mark.parametrize(
    "intent",
    [
        "draw a chart and save it to /tmp/chart.svg",
        "Write notes/today.md",
        "convert /in/a.csv. Store the table in ~/b.json",
        "the report, generated as ./report.html",
    ],
)
def test_an_intent_that_saves_at_a_path_implies_writing_a_file(intent: str) -> None:
    assert saves_file(intent)
    assert parts_of(intent)[-1].text == WRITING


@pytest.mark.parametrize(
    "intent",
    [
        "summarise /tmp/notes.md",
        "save the page https://example.org/a/b.html",
        "save the world",
        "create a folder in /tmp/new",
        "Write a poem. The words are in /tmp/words.txt",
        "read /tmp/a.txt, then /tmp/b.txt",
    ],
)
def test_other_paths_imply_nothing(intent: str) -> None:
    assert not saves_file(intent)


def test_the_implied_step_is_not_searched_twice() -> None:
    assert [part.text for part in parts_of(WRITING)] == [WRITING]


@given(st.text(max_size=4000))
def test_the_number_of_parts_and_terms_is_bounded(intent: str) -> None:
    parts = parts_of(intent)
    assert parts[0].text == intent
    assert len(parts) <= MAX_CLAUSES + 2
    assert all(len(set(part.terms)) == len(part.terms) <= MAX_TERMS for part in parts)
