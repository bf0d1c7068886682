"""Evidence of use: shares of what served similar intents, and bounds of what one can do to them."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from pml_registry.domain.evidence import (
    MAX_SUPPORTED,
    MOST_OF_ONE,
    MOST_OF_ONE_HOUR,
    NEIGHBOURS,
    NEIGHBOURS_OF_ONE,
    NEW_OF_ONE_HOUR,
    PRIOR,
    Use,
    kept,
    opinion_weight,
    support,
    surplus,
)
from pml_registry.domain.ranking import EVIDENCE_WEIGHT, Ranked, Target, with_evidence

GOOD, BAD = Target("tool", "fs:good"), Target("tool", "fs:bad")


def use(
    intent: str = "read it",
    *served: Target,
    who: str = "ann",
    hour: int = 0,
    weight: float = 1.0,
    measured: bool = False,
) -> Use:
    return Use(who, intent, served or (GOOD,), hour, weight, measured)


def cosines(*values: float) -> NDArray[np.float32]:
    return np.asarray(values, np.float32)


def share(found: Sequence[tuple[float, Use]], of: Target = GOOD) -> float:
    values = cosines(*(cosine for cosine, _ in found))
    return support(values, [each for _, each in found]).get(of, 0.0)


def test_a_use_of_the_same_intent_supports_what_served_it_and_no_more_than_its_hour_may() -> None:
    assert share([(1.0, use())]) == pytest.approx(MOST_OF_ONE_HOUR / (MOST_OF_ONE_HOUR + PRIOR))


def test_far_intents_support_less_and_opposite_ones_nothing() -> None:
    assert share([(0.5, use())]) == pytest.approx(0.25 / (0.25 + PRIOR))
    assert share([(-0.5, use())]) == share([(0.0, use())]) == 0.0
    assert support(cosines(), []) == {}


def test_uses_of_one_intent_by_several_weigh_together_as_one() -> None:
    same = [(0.5, use(who=who, hour=hour)) for hour, who in enumerate("abc")]
    assert share(same) == pytest.approx(share(same[:1]))
    divided = [*same[:2], (0.5, use("read it", BAD, who="c", hour=2))]
    assert share(divided) == pytest.approx(2 * share(divided, BAD))


def test_the_nearest_intents_count() -> None:
    many = [
        (0.4, use(f"intent {number}", who=f"p{number}", hour=number))
        for number in range(NEIGHBOURS)
    ]
    near = [(0.5, use("near", BAD, who="q", hour=99))]
    far = [(0.3, use("far", BAD, who="r", hour=98))]
    assert share([*many, *near], BAD) > 0.0
    assert share([*far, *many], BAD) == 0.0


def test_one_principal_is_half_of_the_neighbours_as_long_as_there_are_others() -> None:
    own = [(0.9, use(f"intent {number}", BAD, hour=number)) for number in range(NEIGHBOURS)]
    others = [
        (0.3, use(f"other {number}", who=f"p{number}", hour=50 + number)) for number in range(9)
    ]
    mixed = share([*own, *others])
    assert mixed > 0.0
    assert share([*own, *others[: NEIGHBOURS_OF_ONE - 1]]) > 0.0
    joined = [*own, (0.9, use("intent 9", BAD, who="p0", hour=70)), *others]
    assert share(joined) > 0.0
    assert share(own, BAD) == pytest.approx(MOST_OF_ONE / (MOST_OF_ONE + PRIOR))


def test_at_most_so_many_are_supported() -> None:
    targets = [Target("tool", f"t:{number:03}") for number in range(MAX_SUPPORTED + 5)]
    assert list(support(cosines(1.0), [use("read it", *targets)])) == targets[:MAX_SUPPORTED]


USES = st.lists(
    st.tuples(
        st.floats(-1, 1, width=32),
        st.builds(
            Use,
            principal=st.sampled_from("abcd"),
            intent=st.sampled_from([f"intent {number}" for number in range(15)]),
            served=st.lists(st.sampled_from([GOOD, BAD]), min_size=1, unique=True).map(tuple),
            hour=st.integers(0, 3),
            weight=st.floats(0, 1),
        ),
    ),
    max_size=40,
)


@given(USES)
def test_shares_lie_between_0_and_1(found: list[tuple[float, Use]]) -> None:
    values = support(cosines(*(cosine for cosine, _ in found)), [each for _, each in found])
    assert all(0.0 < value < 1.0 for value in values.values())


def bound(most: float, others: float) -> float:
    """The share that docs/discovery.md states as the most."""
    return most / (most + others + PRIOR)


@given(USES, st.lists(st.tuples(st.floats(0, 1, width=32), st.integers(0, 30)), max_size=60))
def test_an_attack_by_one_principal_raises_a_bad_tool_at_most_so_far(
    found: list[tuple[float, Use]], attack: list[tuple[float, int]]
) -> None:
    honest = [(cosine, replace_served(each, GOOD)) for cosine, each in found]
    hostile = [
        (cosine, use(f"attack {number}", BAD, who="mallory", hour=hour))
        for number, (cosine, hour) in enumerate(attack)
    ]
    assert share([*honest, *hostile], BAD) <= bound(MOST_OF_ONE, 0.0) + 1e-6


@given(st.lists(st.tuples(st.floats(0, 1, width=32), st.integers(0, 9)), max_size=60))
def test_an_attack_in_one_hour_by_any_number_of_principals_moves_as_little(
    attack: list[tuple[float, int]],
) -> None:
    hostile = [
        (cosine, use(f"attack {number}", BAD, who=f"sock {who}", hour=7))
        for number, (cosine, who) in enumerate(attack)
    ]
    alone = [(cosine, use(f"attack {n}", BAD, hour=7)) for n, (cosine, _) in enumerate(attack)]
    assert share(hostile, BAD) <= bound(MOST_OF_ONE, 0.0) + 1e-6
    assert share(alone, BAD) <= bound(MOST_OF_ONE_HOUR, 0.0) + 1e-6


def honest_four() -> list[tuple[float, Use]]:
    """Four principals who used the very intent, and others near it."""
    return [
        (cosine, use(intent, who=f"p{who}", hour=10 * who + at))
        for who in range(4)
        for at, (intent, cosine) in enumerate(
            [("read it", 1.0), (f"read {who}", 0.9), (f"show {who}", 0.8)]
        )
    ]


def test_a_flood_of_one_principal_against_four_sinks_a_good_tool_by_less_than_a_third() -> None:
    before = share(honest_four())
    flood = [
        (1.0, use(f"flood {number}", BAD, who="mallory", hour=number)) for number in range(1_000)
    ]
    after = share([*flood, *honest_four()])
    raised = share([*flood, *honest_four()], BAD)
    assert raised <= bound(MOST_OF_ONE, 0.0)
    assert raised < after
    assert after >= before * 2 / 3


def test_a_score_moves_by_the_share_of_its_distance_to_1() -> None:
    ranked = with_evidence(Ranked("tool", GOOD.id, 0.4), {GOOD: 0.5})
    assert ranked.score == pytest.approx(0.4 + EVIDENCE_WEIGHT * 0.5 * 0.6)
    assert ranked.from_use == pytest.approx(ranked.score - 0.4)
    assert with_evidence(Ranked("tool", BAD.id, 0.4), {GOOD: 0.5}).score == 0.4


def test_the_most_that_one_principal_moves_a_score_is_as_documented() -> None:
    alone = EVIDENCE_WEIGHT * bound(MOST_OF_ONE, 0.0)
    in_one_hour = EVIDENCE_WEIGHT * bound(MOST_OF_ONE_HOUR, 0.0)
    beside_two = EVIDENCE_WEIGHT * bound(MOST_OF_ONE, 2.0)
    assert (round(alone, 2), round(in_one_hour, 2), round(beside_two, 2)) == (0.53, 0.4, 0.23)


def test_one_hostile_opinion_halves_a_use_and_a_useful_one_restores_most() -> None:
    assert opinion_weight(0.0, 0.0) == opinion_weight(3.0, 0.0) == 1.0
    assert opinion_weight(0.0, 1.0) == 0.5
    assert opinion_weight(2.0, 1.0) == 0.75


def test_hostile_opinions_sink_what_served_at_most_by_half_for_each_principal() -> None:
    plain = [(0.5, use(f"intent {number}", who=f"p{number}", hour=number)) for number in range(4)]
    weight = opinion_weight(0.0, 1.0)
    judged = [(cosine, replace_weight(each, weight)) for cosine, each in plain]
    assert share(judged) >= share(plain) / 2


def replace_served(one: Use, served: Target) -> Use:
    return Use(one.principal, one.intent, (served,), one.hour, one.weight)


def replace_weight(one: Use, weight: float) -> Use:
    return Use(one.principal, one.intent, one.served, one.hour, weight)


def test_uses_that_repeat_the_hour_and_those_beyond_its_bound_are_not_kept() -> None:
    known = [use("read it"), use("write it", hour=1)]
    new = [use("read it"), use("read it", BAD), use("read it", BAD), use("read it", hour=1)]
    assert kept(new, known, 9) == [1, 3]
    assert kept([*new, use("write it", hour=2)], known, 2) == [1, 3]
    assert kept([Use("ann", "nothing served", (), 0)], [], 9) == []
    flood = [use(f"intent {number}") for number in range(NEW_OF_ONE_HOUR + 5)]
    assert len(kept(flood, [], 1_000)) == NEW_OF_ONE_HOUR
    assert kept([*flood, use(who="bob")], [], 1_000)[-1] == len(flood)


def test_of_too_many_the_oldest_of_whoever_has_most_are_dropped() -> None:
    flood = [("mallory", number) for number in range(100, 18, -1)]
    honest = [("ann", number) for number in range(18, 0, -1)]
    assert surplus([*flood, *honest], 100) == []
    dropped = surplus([("mallory", 101), *flood, *honest], 100)
    assert len(dropped) == 11
    assert sorted(dropped) == list(range(19, 30))
