"""Prioritized experience replay."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml_common.contracts.capability import Learning, PathStats
from pml_learner.domain.replay import (
    LEAST,
    InvalidReplay,
    PastRun,
    ReplayBuffer,
    ReplayRule,
    refreshed,
)


def dice() -> random.Random:
    """Seeded, so that a failure can be repeated."""
    return random.Random(7)  # noqa: S311 - not for secrets


def buffer_of(*priorities: float, rule: ReplayRule | None = None) -> ReplayBuffer[int]:
    buffer = ReplayBuffer[int](len(priorities), rule or ReplayRule())
    for key, priority in enumerate(priorities):
        buffer.put(key, priority)
    return buffer


def test_surprising_traces_are_sampled_as_their_priority_to_the_power_of_alpha() -> None:
    priorities, rule = (1.0, 0.5, 0.25, 0.05), ReplayRule(alpha=0.6)
    buffer = buffer_of(*priorities, rule=rule)
    sampled = buffer.sample(40_000, dice())
    total = sum(each**0.6 for each in priorities)
    shares = Counter(each.key for each in sampled)
    for key, priority in enumerate(priorities):
        expected = priority**0.6 / total
        assert shares[key] / 40_000 == pytest.approx(expected, abs=0.01)
        (chance,) = {each.probability for each in sampled if each.key == key}
        assert chance == pytest.approx(expected)


def test_without_alpha_all_are_as_likely() -> None:
    sampled = buffer_of(1.0, 0.1, 0.0, rule=ReplayRule(alpha=0)).sample(9, dice())
    assert [each.probability for each in sampled] == pytest.approx([1 / 3] * 9)
    assert {each.weight for each in sampled} == {1.0}


def test_weights_undo_the_preference_wholly_in_the_end() -> None:
    buffer = buffer_of(1.0, 0.1, rule=ReplayRule(beta=0.4, steps=2))
    thrown = dice()
    for beta in (0.4, 0.7, 1.0, 1.0):
        by_key = {each.key: each for each in buffer.sample(50, thrown)}
        often, seldom = by_key[0], by_key[1]
        assert seldom.weight == 1.0
        assert often.weight == pytest.approx((often.probability / seldom.probability) ** -beta)


def test_weighted_samples_estimate_what_all_traces_say() -> None:
    rule = ReplayRule(beta=1.0)
    buffer = buffer_of(*[0.9] * 10, *[0.1] * 90, rule=rule)
    sampled = buffer.sample(20_000, dice())
    weights = sum(each.weight for each in sampled)
    failed = sum(each.weight for each in sampled if each.key < 10)
    assert failed / weights == pytest.approx(0.1, abs=0.01)


def test_an_expected_trace_has_a_chance_and_an_empty_buffer_none() -> None:
    sampled = buffer_of(1.0, 0.0).sample(500, dice())
    assert 0 < sum(each.key for each in sampled) < 100
    assert buffer_of(0.0).sample(1, dice())[0].probability == 1.0
    assert ReplayBuffer[int](4, ReplayRule()).sample(3, dice()) == ()
    assert list(buffer_of(1.0).sample(0, dice())) == []


def test_the_same_seed_samples_the_same() -> None:
    priorities = [number / 50 for number in range(50)]
    one, other = (buffer_of(*priorities).sample(30, dice()) for _ in range(2))
    assert one == other


def test_the_oldest_trace_makes_room_and_a_known_one_has_its_new_priority() -> None:
    buffer = ReplayBuffer[str](2, ReplayRule(alpha=1.0))
    for key, priority in (("old", 1.0), ("kept", 1.0), ("new", 0.75), ("kept", 0.25)):
        buffer.put(key, priority)
        buffer.check_valid()
    assert len(buffer) == 2
    chances = {each.key: each.probability for each in buffer.sample(100, dice())}
    assert chances == {"new": 0.75, "kept": 0.25}


@given(st.lists(st.tuples(st.integers(0, 30), st.floats(0, 1)), max_size=60), st.integers(1, 20))
def test_whatever_is_put_the_buffer_stays_valid(
    puts: list[tuple[int, float]], capacity: int
) -> None:
    buffer = ReplayBuffer[int](capacity, ReplayRule())
    kept: dict[int, float] = {}
    for key, priority in puts:
        buffer.put(key, priority)
        if key not in kept and len(kept) == capacity:
            del kept[next(iter(kept))]
        kept[key] = priority
        buffer.check_valid()
    assert len(buffer) == len(kept)
    sampled = buffer.sample(20, dice())
    total = sum(max(LEAST, each) ** 0.6 for each in kept.values())
    for each in sampled:
        assert each.probability == pytest.approx(max(LEAST, kept[each.key]) ** 0.6 / total)
        assert 0 < each.weight <= 1


@pytest.mark.parametrize("priority", [-0.1, 1.1, float("nan"), float("inf")])
def test_a_priority_that_is_none_is_refused(priority: float) -> None:
    with pytest.raises(InvalidReplay, match="a priority is in"):
        buffer_of(priority)


@pytest.mark.parametrize("said", ["node", "place 0", "place 3", "do not agree", "buffer for 3"])
def test_a_buffer_that_contradicts_itself_is_found(said: str) -> None:
    buffer = buffer_of(0.5, 0.5, 0.5)
    inside = vars(buffer)
    if said == "node":
        inside["_sums"][1] = 9.0
    elif said == "do not agree":
        inside["_places"].clear()
    elif said == "buffer for 3":
        inside["_keys"].append(3)
    else:
        place, value = (0, 0.0) if said == "place 0" else (3, 0.5)
        getattr(ReplayBuffer, "_set")(buffer, place, value)  # noqa: B009 - private
    with pytest.raises(InvalidReplay, match=said):
        buffer.check_valid()


def test_a_priority_is_refreshed_by_the_present_values() -> None:
    known = PathStats(path=("n1",), count=40, success_rate=0.95, mean_duration_ms=10)
    learning = Learning(paths=(known,))

    def now(success: bool, path: tuple[str, ...] = ("n1",), duration_ms: float = 10) -> float:
        return refreshed(PastRun(path, success, duration_ms, 0.4), learning)

    assert now(False) == pytest.approx(0.95)
    assert now(True) == pytest.approx(0.05)
    assert now(True, duration_ms=16) == pytest.approx(0.25)
    assert now(True, ("n2",)) == 0.4
