"""Edges that runs show: how they are counted, bounded, promoted and forgotten."""

import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml_common.contracts.learner import (
    COHORTS,
    EdgesObserved,
    ObservedCall,
    ObservedEdge,
    ObservedRelation,
)
from pml_registry.domain.edge_counts import (
    HALF_LIFE,
    MOST_AN_HOUR,
    MOST_OF_A_COHORT,
    EdgeKey,
    ShownBy,
    ShownEdge,
    counted,
    shown_edges,
    turned,
)
from services.registry.tests.support.builders import ELSEWHERE, NOON, SCOPE, edges

A, B = UUID(int=10), UUID(int=11)
NEW = ShownBy("inferred")
HOUR = timedelta(hours=1)


def _shown(times: int, *, at: datetime = NOON, apart: timedelta = HOUR) -> ShownBy:
    """An edge that single runs of one cohort showed, the last of them at a time."""
    shown = NEW
    for number in range(times - 1, -1, -1):
        shown = shown.plus(0, 1, at - number * apart)
    return shown


def test_edges_of_a_message_are_told_once_by_their_ends() -> None:
    observed = edges(("b:y", "c:z"), ("a:x", "b:y"), ("b:y", "c:z"), runs=3, cohort=5)
    elsewhere = edges(("b:y", "c:z"), scope=ELSEWHERE)
    assert shown_edges([observed, elsewhere]) == [
        ShownEdge(observed.event_id, (SCOPE, "a:x", "b:y", "sequence"), 5, 3),
        ShownEdge(observed.event_id, (SCOPE, "b:y", "c:z", "sequence"), 5, 3),
        ShownEdge(elsewhere.event_id, (ELSEWHERE, "b:y", "c:z", "sequence"), 0, 1),
    ]


def test_an_edge_is_shown_by_no_more_runs_than_the_message_is_of() -> None:
    loop = edges(("a:x", "b:y")).model_copy(
        update={"edges": (ObservedEdge(from_tool="a:x", to_tool="b:y", count=900),)}
    )
    assert [each.runs for each in shown_edges([loop])] == [1]


def test_edges_to_the_same_or_to_an_invalid_node_are_ignored() -> None:
    strange = edges(("a:x", "a:x"), ("a:x", "nothing"), ("x" * 300 + ":y", "a:x"))
    assert shown_edges([strange]) == []
    ends = [(str(A), str(A)), ("no-id", "a:x"), (str(A), "a:\x00"), ("a:x", "b:y")]
    relations = [ObservedRelation(from_=one, to=to, type="sequence") for one, to in ends]
    relations += [
        ObservedRelation(from_="a:x", to=str(A), type="contains"),
        ObservedRelation(from_=str(A).upper(), to="a:x", type="contains"),
    ]
    assert shown_edges([_related(relations)]) == []


def _related(relations: Sequence[ObservedRelation]) -> EdgesObserved:
    return edges().model_copy(update={"relations": tuple(relations)})


def test_edges_of_capabilities_name_them() -> None:
    relations = [
        ObservedRelation(from_=str(A), to="a:x", type="contains"),
        ObservedRelation(from_="a:x", to=str(B), type="sequence"),
        ObservedRelation(from_=str(B), to=str(A), type="sequence"),
    ]
    message = _related(relations).model_copy(
        update={"calls": (ObservedCall(from_capability_id=A, to_capability_id=B),)}
    )
    found = {each.key[1:]: tuple(each.capabilities) for each in shown_edges([message])}
    assert found == {
        (str(A), "a:x", "contains"): (A,),
        (str(A), str(B), "contains"): (A, B),
        ("a:x", str(B), "sequence"): (B,),
        (str(B), str(A), "sequence"): (B, A),
    }


def test_three_runs_make_an_edge_observed_also_some_days_apart() -> None:
    assert [_shown(times).source for times in (1, 2, 3)] == ["inferred", "inferred", "observed"]
    assert _shown(3, apart=timedelta(days=7)).source == "observed"
    assert _shown(3, apart=timedelta(days=20)).source == "inferred"


@pytest.mark.parametrize(
    ("runs", "half_lives", "source"),
    [
        ((3,), 0.99, "observed"),
        ((3,), 1.01, "inferred"),
        ((5, 5, 5, 5), 3.7, "observed"),
        ((5, 5, 5, 5), 3.8, "inferred"),
    ],
)
def test_a_promoted_edge_sinks_back_when_no_run_shows_it(
    runs: Sequence[int], half_lives: float, source: str
) -> None:
    shown = NEW
    for cohort, of_cohort in enumerate(runs):
        shown = shown.plus(cohort, of_cohort, NOON)
    later = shown.at(NOON + half_lives * HALF_LIFE)
    assert later is not None
    assert later.source == source
    assert later.at(NOON + half_lives * HALF_LIFE) == later, "a repetition changes nothing"
    assert later.count == sum(runs)


def test_a_sunken_edge_takes_three_runs_again_whenever_it_was_looked_at() -> None:
    later = NOON + 3 * HALF_LIFE
    looked = _shown(3).at(later)
    assert looked is not None
    for one in (looked, _shown(3)):
        after = one.plus(0, 1, later)
        assert (after.source, after.plus(0, 1, later).source) == ("inferred", "inferred")
        assert after.plus(0, 2, later).source == "observed"


def test_a_template_and_what_a_rule_says_never_fade() -> None:
    far = NOON + 100 * HALF_LIFE
    template = ShownBy("template", last_shown=NOON, base="template", base_confidence=0.5)
    assert template.at(far) == template
    promoted = template.plus(0, 3, NOON)
    assert promoted.source == "observed"
    sunk = promoted.at(far)
    assert sunk is not None
    assert (sunk.source, sunk.confidence(far)) == ("template", 0.5)
    rule = ShownBy("inferred", last_shown=NOON, base="inferred", base_confidence=0.8)
    assert rule.plus(0, 1, NOON).confidence(NOON) == 0.8


def test_an_edge_that_only_runs_showed_is_forgotten() -> None:
    once = _shown(1)
    assert once.confidence(NOON) == 0.5
    kept = once.at(NOON + 3.9 * HALF_LIFE)
    assert kept is not None
    assert kept.confidence(NOON + 3.9 * HALF_LIFE) < 0.1
    assert once.at(NOON + 4.1 * HALF_LIFE) is None


def test_a_clock_set_back_fades_and_refreshes_nothing() -> None:
    shown = _shown(2)
    assert shown.strength(NOON - HALF_LIFE) == shown.strength(NOON)
    assert shown.plus(0, 1, NOON - HALF_LIFE).last_shown == NOON


def test_a_burst_of_one_cohort_counts_five_times_an_hour() -> None:
    flooded = NEW
    for _ in range(100):
        flooded = flooded.plus(3, 1000, NOON)
    assert (flooded.count, flooded.strength(NOON)) == (MOST_AN_HOUR, MOST_AN_HOUR)
    for hours in range(1, 200):
        flooded = flooded.plus(3, 1000, NOON + hours * HOUR)
        assert flooded.strength(flooded.last_shown) <= MOST_OF_A_COHORT
    assert flooded.confidence(flooded.last_shown) <= MOST_OF_A_COHORT / (MOST_OF_A_COHORT + 1)


def test_the_flood_of_one_cohort_takes_nothing_from_others() -> None:
    flooded = NEW.plus(3, 1000, NOON)
    assert flooded.plus(4, 2, NOON).strength(NOON) == MOST_AN_HOUR + 2
    everyone = NEW
    for cohort in range(COHORTS):
        everyone = everyone.plus(cohort, 1000, NOON)
    assert everyone.strength(NOON) == COHORTS * MOST_AN_HOUR


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), max_size=20),
    st.randoms(use_true_random=False),
)
def test_counts_do_not_depend_on_the_order(
    added: list[tuple[int, int]], order: random.Random
) -> None:
    key = (SCOPE, "a:x", "b:y", "sequence")
    shown = [ShownEdge(uuid4(), key, cohort, runs) for cohort, runs in added]
    one = counted({key: NEW}, shown, NOON)[key]
    order.shuffle(shown)
    other = counted({key: NEW}, shown, NOON)[key]
    assert other == one
    of_cohort = {
        cohort: sum(runs for other, runs in added if other == cohort) for cohort, _ in added
    }
    assert one.count == sum(min(MOST_AN_HOUR, runs) for runs in of_cohort.values())
    assert [share.cohort for share in one.shares] == sorted(of_cohort)


@given(
    st.lists(st.tuples(st.integers(0, 15), st.integers(1, 9), st.integers(0, 2000)), max_size=30)
)
def test_strength_stays_within_its_bounds_and_only_falls_without_runs(
    added: list[tuple[int, int, int]],
) -> None:
    shown, at = NEW, NOON
    for cohort, runs, hours in added:
        at += timedelta(hours=hours)
        before = shown.strength(at)
        shown = shown.plus(cohort, runs, at)
        assert before <= shown.strength(at) + 1e-9
        assert shown.strength(at) <= before + MOST_AN_HOUR + 1e-9
        assert all(share.strength <= MOST_OF_A_COHORT for share in shown.shares)
        assert shown.strength(at + HALF_LIFE) == pytest.approx(shown.strength(at) / 2)
    assert len({share.cohort for share in shown.shares}) == len(shown.shares) <= COHORTS


def test_a_share_remembers_the_hour_of_its_own_last_run() -> None:
    shown = NEW.plus(1, 5, NOON).plus(2, 1, NOON + HOUR).plus(1, 5, NOON + timedelta(minutes=30))
    hour = int((NOON + HOUR).timestamp() // 3600)
    assert [(each.cohort, each.hour, each.in_hour) for each in shown.shares] == [
        (1, hour, 5),
        (2, hour, 1),
    ]


def test_edges_of_capabilities_are_remembered_apart_from_those_of_tools() -> None:
    of_tools = ShownEdge(uuid4(), (SCOPE, "a:x", "b:y", "sequence"), 0, 1)
    of_both = ShownEdge(uuid4(), (SCOPE, str(A), "b:y", "contains"), 0, 1)
    assert (of_tools.capabilities, of_both.capabilities) == ([], [A])
    assert of_tools.counted_by("edges") == "edges" != of_both.counted_by("edges")


def test_edges_with_another_source_than_before_are_told() -> None:
    same: EdgeKey = SCOPE, "a:x", "b:y", "sequence"
    other: EdgeKey = SCOPE, "b:y", "c:z", "sequence"
    before: dict[EdgeKey, ShownBy] = {same: _shown(1), other: _shown(2)}
    shown = [ShownEdge(uuid4(), key, 0, 1) for key in before]
    assert turned(before, counted(before, shown, NOON + HOUR)) == [other]
