"""The guard of evidence: used while it ranks a scope's own uses better than without it."""

import pytest

from pml_registry.domain.evidence import Use
from pml_registry.domain.ranking import Target
from pml_registry.domain.trials import (
    MIN_TRIALS,
    MOST_TRIALS,
    MOST_TRIALS_OF_ONE,
    NO_GAIN,
    TRIALS_OF_ONE_HOUR,
    Quality,
    Standing,
    Trial,
    judged,
    quality,
    to_measure,
)

A, B, C = (Target("tool", name) for name in "abc")


def trial(gain: float, who: str = "ann", recall: float | None = None) -> Trial:
    with_evidence = Quality(0.5 + gain, 0.5 + (gain if recall is None else recall))
    return Trial(who, Quality(0.5, 0.5), with_evidence)


def mixed(gains: list[float], count: int) -> list[Trial]:
    return [trial(gains[number % len(gains)]) for number in range(count)]


def test_quality_counts_the_first_five_places() -> None:
    assert quality([A, B, C], {A}) == Quality(1.0, 1.0)
    assert quality([], {A}) == Quality(0.0, 0.0)
    others = [Target("tool", f"other {number}") for number in range(5)]
    assert quality([*others, A], {A}) == Quality(0.0, 0.0)
    found = quality([B, A, C], {A, Target("capability", "a")})
    assert found.recall == 0.5
    assert found.ndcg == pytest.approx(0.3869, abs=1e-4)


def test_evidence_is_used_from_the_least_number_of_uses_that_it_ranks_better() -> None:
    gains = [0.4, 0.0, 0.1]
    assert not judged(mixed(gains, MIN_TRIALS - 1), Standing()).used
    standing = judged(mixed(gains, MIN_TRIALS), Standing())
    assert standing.used
    assert standing.trials == MIN_TRIALS
    assert standing.ndcg.low > 0.0
    assert standing.ndcg.mean == pytest.approx(0.5 / 3)
    assert standing.without.ndcg == standing.without.recall == pytest.approx(0.5)


@pytest.mark.parametrize("gains", [[0.0], [-0.1, 0.1], [-0.2, 0.3, -0.1]], ids=str)
def test_evidence_is_not_used_where_it_is_no_better_beyond_its_interval(gains: list[float]) -> None:
    assert not judged(mixed(gains, 60), Standing()).used


def test_evidence_that_loses_recall_is_not_used() -> None:
    trials = [trial(0.2, recall=-0.1) for _ in range(60)]
    assert not judged(trials, Standing()).used


def test_once_used_it_stays_until_its_gain_is_gone() -> None:
    gains = [-0.2, 0.3, -0.2, 0.2]
    assert not judged(mixed(gains, 100), Standing()).used
    assert judged(mixed(gains, 100), Standing(used=True)).used
    assert not judged(mixed([-0.2, 0.2], 100), Standing(used=True)).used


def test_a_loss_of_the_last_uses_ends_it_before_the_mean_is_gone() -> None:
    lost = [trial(-0.1 - 0.01 * (number % 2)) for number in range(MIN_TRIALS)]
    gained = [trial(0.4) for _ in range(70)]
    standing = judged([*lost, *gained], Standing(used=True))
    assert standing.ndcg.mean > 0.0
    assert not standing.used
    assert judged([*lost[:10], *gained], Standing(used=True)).used


def test_one_principal_fills_half_of_the_last_uses_at_most() -> None:
    flood = [trial(0.5, "mallory") for _ in range(1_000)]
    honest = [trial(-0.5, f"p{number % 4}") for number in range(150)]
    standing = judged([*flood, *honest], Standing())
    assert standing.trials == MOST_TRIALS
    assert MOST_TRIALS_OF_ONE == MOST_TRIALS // 2
    assert standing.ndcg.mean == pytest.approx(0.0)
    assert not standing.used


def test_without_trials_there_is_no_gain() -> None:
    assert judged([], Standing()) == Standing()
    assert judged([trial(0.5)], Standing()).ndcg == NO_GAIN


def test_of_one_principal_and_hour_some_uses_are_ranked() -> None:
    def use(who: str, hour: int, *, measured: bool = False) -> Use:
        return Use(who, "read", (A,), hour, measured=measured)

    new = [use("ann", 1) for _ in range(9)]
    assert to_measure(new, [], 9) == list(range(TRIALS_OF_ONE_HOUR))
    known = [use("ann", 1, measured=True), use("ann", 1), use("bob", 1, measured=True)]
    assert to_measure(new, known, 9) == list(range(TRIALS_OF_ONE_HOUR - 1))
    assert to_measure([*new, use("ann", 2), use("bob", 1)], known, 5) == [0, 1, 2, 3, 9]
