"""Scores and ranks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml_registry.domain.ranking import Candidate, Kind, rank, score

KINDS = st.sampled_from(["tool", "capability"])
CANDIDATES = st.builds(
    Candidate, KINDS, st.text("abc", min_size=1), st.floats(-1, 1), st.floats(0, 1)
)


def _candidate(
    cosine: float, coverage: float = 0.0, *, kind: Kind = "tool", id_: str = "a:b"
) -> Candidate:
    return Candidate(kind, id_, cosine, coverage)


def test_without_common_words_the_score_is_the_cosine() -> None:
    assert score(_candidate(0.6)) == pytest.approx(0.6)


def test_common_words_raise_a_score_by_a_share_of_its_distance_to_1() -> None:
    assert score(_candidate(0.6, 0.5)) == pytest.approx(0.6 + 0.4 * 0.3 * 0.5)


def test_opposed_meanings_count_as_none() -> None:
    assert score(_candidate(-0.4)) == 0.0


def test_the_best_comes_first_and_low_scores_are_dropped() -> None:
    ranked = rank([_candidate(0.2, id_="a:low"), _candidate(0.9, id_="b:high")], 0.5)
    assert [found.id for found in ranked] == ["b:high"]


def test_the_order_of_ties_is_fixed() -> None:
    equals = [_candidate(0.5, id_="b"), _candidate(0.5, id_="a", kind="capability")]
    assert [found.id for found in rank(equals, 0.0)] == ["a", "b"]
    assert rank(equals[::-1], 0.0) == rank(equals, 0.0)


@given(CANDIDATES)
def test_a_score_lies_between_0_and_1(candidate: Candidate) -> None:
    assert 0.0 <= score(candidate) <= 1.0


@given(st.floats(-1, 1), st.floats(0, 1), st.floats(-1, 1), st.floats(0, 1))
def test_more_of_both_never_scores_less(a: float, x: float, b: float, y: float) -> None:
    weaker = _candidate(min(a, b), min(x, y))
    stronger = _candidate(max(a, b), max(x, y))
    assert score(weaker) <= score(stronger) + 1e-12


@given(st.lists(CANDIDATES), st.floats(0, 1))
def test_ranking_keeps_exactly_the_candidates_over_the_minimum_in_order(
    candidates: list[Candidate], floor: float
) -> None:
    ranked = rank(candidates, floor)
    scores = [found.score for found in ranked]
    assert scores == sorted(scores, reverse=True)
    assert len(ranked) == sum(score(candidate) >= floor for candidate in candidates)
