"""Scores and ranks."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml_registry.domain.intents import Part
from pml_registry.domain.ranking import (
    Candidate,
    Kind,
    lexical,
    merged,
    rank,
    rarities,
    with_reliability,
)

WORDS = ("read", "file", "mail")
PARTS = st.lists(
    st.builds(
        Part, st.just(""), st.lists(st.sampled_from(WORDS), unique=True).map(tuple), st.just(9)
    ),
    min_size=1,
    max_size=3,
)
FITS = st.lists(st.lists(st.floats(0, 1), min_size=4, max_size=4), min_size=1, max_size=5)
RUNS = st.integers(0, 10_000)


def _candidates(parts: int) -> st.SearchStrategy[list[Candidate]]:
    return st.lists(
        st.builds(
            Candidate,
            kind=st.sampled_from(["tool", "capability"]),
            id=st.text("abc", min_size=1, max_size=3),
            cosines=st.tuples(*[st.floats(-1, 1)] * parts),
            weights=st.dictionaries(st.sampled_from(WORDS), st.floats(0, 1, exclude_max=True)),
            server=st.sampled_from([None, "fs", "mail"]),
            runs=st.integers(5, 9),
            success_rate=st.floats(0, 1),
        ),
        unique_by=lambda candidate: (candidate.kind, candidate.id),
        max_size=8,
    )


SEARCHES = PARTS.flatmap(lambda parts: st.tuples(st.just(parts), _candidates(len(parts))))


def _part(*terms: str) -> Part:
    return Part(" ".join(terms), terms, 9)


def _tool(id_: str, *cosines: float, server: str | None = None, **weights: float) -> Candidate:
    return Candidate("tool", id_, cosines, weights, server)


def _order(parts: list[Part], candidates: list[Candidate]) -> list[str]:
    return [found.id for found in rank(parts, candidates, 0.0)]


def test_without_common_words_the_score_is_half_the_cosine() -> None:
    (found,) = rank([_part("read")], [_tool("a", 0.6)], 0.0)
    assert found.score == pytest.approx(0.3)


def test_opposed_meanings_count_as_none() -> None:
    (found,) = rank([_part("read")], [_tool("a", -0.6)], 0.0)
    assert found.score == 0.0


def test_of_equal_meanings_the_one_with_the_rarer_word_leads() -> None:
    tools = [_tool("common", 0.5, file=0.5), _tool("other", 0.5, file=0.5)]
    rare = _tool("rare", 0.5, mail=0.5)
    assert _order([_part("file", "mail")], [*tools, rare])[0] == "rare"


def test_a_part_without_terms_is_ranked_by_meaning() -> None:
    part = _part()
    assert lexical(part, [{"read": 0.5}], rarities([part], [])) == [0.0]
    assert _order([part], [_tool("a", 0.1), _tool("b", 0.2)]) == ["b", "a"]


def test_a_tool_gains_from_its_server() -> None:
    others = [_tool(f"fs:{n}", 0.9, server="fs") for n in range(3)]
    of_the_server, alone = _tool("fs:x", 0.5, server="fs"), _tool("x:x", 0.5, server="x")
    order = _order([_part("read")], [*others, alone, of_the_server])
    assert order[-2:] == ["fs:x", "x:x"]


def test_the_best_tool_does_not_lose_by_its_server() -> None:
    weak = [_tool(f"fs:{n}", 0.1, server="fs") for n in range(3)]
    parts = [_part("read")]
    best, *_ = rank(parts, [*weak, _tool("fs:a", 0.9, server="fs")], 0.0)
    assert (best.id, best.score) == ("fs:a", pytest.approx(0.45))


def test_the_best_comes_first_and_low_scores_are_dropped() -> None:
    ranked = rank([_part("x")], [_tool("a:low", 0.2), _tool("b:high", 0.9)], 0.4)
    assert [found.id for found in ranked] == ["b:high"]


def test_the_order_of_ties_is_fixed() -> None:
    def equal(kind: Kind, id_: str) -> Candidate:
        return Candidate(kind, id_, (0.5,), {})

    equals = [equal("tool", "b"), equal("capability", "a"), equal("tool", "a")]
    assert [(each.kind, each.id) for each in rank([_part("x")], equals, 0.0)] == [
        ("capability", "a"),
        ("tool", "a"),
        ("tool", "b"),
    ]


def test_each_clause_is_served_before_what_fits_none() -> None:
    parts = [_part("read", "mail"), _part("read"), _part("mail")]
    reads = [_tool(f"read:{n}", 0.3, 0.9 - n / 10, 0.0) for n in range(3)]
    mails = _tool("mail:send", 0.3, 0.0, 0.4)
    vague = [_tool(f"vague:{n}", 0.4, 0.3, 0.1) for n in range(9)]
    order = _order(parts, [*vague, *reads, mails])
    assert order.index("mail:send") < min(order.index(each.id) for each in vague)


@given(FITS)
def test_what_fits_no_part_better_never_scores_more(
    fits: list[list[float]],
) -> None:
    scores = merged(fits)
    for at, score in enumerate(scores):
        for other, its_score in enumerate(scores):
            if all(fit[at] >= fit[other] for fit in fits):
                assert score >= its_score


@given(st.lists(st.floats(0.05, 1), min_size=2, max_size=5))
def test_of_clauses_that_one_tool_each_fits_every_tool_leads(bests: list[float]) -> None:
    tools = len(bests)
    clauses = [
        [*(best if at == own else 0.0 for at in range(tools)), best / 5]
        for own, best in enumerate(bests)
    ]
    *served, vague = merged([[0.2] * (tools + 1), *clauses])
    assert min(served) > vague


@given(SEARCHES)
def test_a_score_lies_between_0_and_1(search: tuple[list[Part], list[Candidate]]) -> None:
    parts, candidates = search
    assert all(0.0 <= found.score <= 1.0 for found in rank(parts, candidates, 0.0))


@given(SEARCHES, st.randoms(use_true_random=False))
def test_the_order_of_candidates_has_no_effect(
    search: tuple[list[Part], list[Candidate]], random: Random
) -> None:
    parts, candidates = search
    shuffled = list(candidates)
    random.shuffle(shuffled)
    assert rank(parts, shuffled, 0.0) == rank(parts, candidates, 0.0)


@given(SEARCHES, st.floats(0, 1))
def test_ranking_keeps_exactly_the_candidates_over_the_minimum_in_order(
    search: tuple[list[Part], list[Candidate]], floor: float
) -> None:
    parts, candidates = search
    everything, kept = rank(parts, candidates, 0.0), rank(parts, candidates, floor)
    assert len(everything) == len(candidates)
    assert kept == [found for found in everything if found.score >= floor]
    scores = [found.score for found in kept]
    assert scores == sorted(scores, reverse=True)


def _lifted(score: float, runs: int, successes: int) -> float:
    rate = successes / runs if runs else 0.0
    return with_reliability(
        score, Candidate("capability", "a", (), {}, runs=runs, success_rate=rate)
    )


@given(st.floats(0, 1), RUNS, RUNS, RUNS)
def test_more_successes_never_lower_a_score(score: float, runs: int, one: int, two: int) -> None:
    fewer, more = sorted((min(one, runs), min(two, runs)))
    assert 0.0 <= _lifted(score, runs, fewer) <= _lifted(score, runs, more) <= 1.0


@given(st.floats(0, 1), RUNS, RUNS)
def test_more_failures_never_raise_a_score(score: float, successes: int, failures: int) -> None:
    assert _lifted(score, successes + failures + 1, successes) <= _lifted(
        score, successes + failures, successes
    )


@given(st.floats(0, 1))
def test_a_capability_without_runs_is_scored_like_a_tool(score: float) -> None:
    assert _lifted(score, 0, 0) == score


def test_what_fails_sinks_below_the_new_and_what_succeeds_rises() -> None:
    assert _lifted(0.5, 100, 1) < 0.3 < _lifted(0.5, 0, 0) < _lifted(0.5, 100, 100)
