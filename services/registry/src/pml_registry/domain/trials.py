"""The guard of evidence: it is used in a scope while it ranks that scope's own uses better than
discovery does without it.

Each new use is ranked before it is stored, without evidence and with what was known till then; the
difference of the two, over the last uses, decides.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from pml_registry.domain.evidence import Use
from pml_registry.domain.ranking import Target

PLACES = 5
"""Places of a ranking that are compared."""

MIN_TRIALS = 30
"""Uses that have to be compared before evidence is used."""

MOST_TRIALS = 200
"""Uses that are compared, the last ones."""

MOST_TRIALS_OF_ONE = 100
"""Uses of one principal among them."""

TRIALS_OF_ONE_HOUR = 5
"""Uses of one principal in one hour that are ranked at all."""

_Z = 1.96
"""Standard errors of a 95 % interval's half."""


@dataclass(frozen=True)
class Quality:
    """nDCG and recall of the first PLACES of a ranking."""

    ndcg: float
    recall: float


@dataclass(frozen=True)
class Trial:
    """A use, ranked without evidence and with what there was before it."""

    principal: str
    without: Quality
    with_evidence: Quality


@dataclass(frozen=True)
class Gain:
    """A mean difference, and its 95 % interval."""

    mean: float = 0.0
    low: float = 0.0
    high: float = 0.0


NO_QUALITY: Final = Quality(0.0, 0.0)
NO_GAIN: Final = Gain()


@dataclass(frozen=True)
class Standing:
    """Whether evidence is used in a scope, and by how much it is better over its last uses."""

    used: bool = False
    trials: int = 0
    without: Quality = NO_QUALITY
    ndcg: Gain = NO_GAIN
    recall: Gain = NO_GAIN


def judged(newest: Sequence[Trial], before: Standing) -> Standing:
    """Judge by the newest trials, the newest first.

    Evidence comes into use once the lower bound of nDCG's gain is above 0 and recall does not fall;
    it stays until the mean gain is gone, or until the last MIN_TRIALS show a loss by their upper
    bound.
    """
    trials = _fair(newest)
    ndcg = _gain([each.with_evidence.ndcg - each.without.ndcg for each in trials])
    recall = _gain([each.with_evidence.recall - each.without.recall for each in trials])
    last = _gain([each.with_evidence.ndcg - each.without.ndcg for each in trials[:MIN_TRIALS]])
    if before.used:
        used = ndcg.mean > 0.0 and last.high >= 0.0
    else:
        used = len(trials) >= MIN_TRIALS and ndcg.low > 0.0 and recall.mean >= 0.0
    without = Quality(
        _mean([each.without.ndcg for each in trials]),
        _mean([each.without.recall for each in trials]),
    )
    return Standing(used, len(trials), without, ndcg, recall)


def quality(ranked: Sequence[Target], served: Collection[Target]) -> Quality:
    """Quality of a ranking, best first, for a use; `served` is not empty."""
    hits = [target in served for target in ranked[:PLACES]]
    best = [True] * min(PLACES, len(served))
    return Quality(_discounted(hits) / _discounted(best), sum(hits) / len(served))


def to_measure(new: Sequence[Use], known: Iterable[Use], most: int) -> Sequence[int]:
    """Places of the new uses that are ranked: of one principal and hour TRIALS_OF_ONE_HOUR, with
    those ranked earlier, and `most` in all."""
    ranked = Counter((use.principal, use.hour) for use in known if use.measured)
    chosen: list[int] = []
    for place, use in enumerate(new):
        key = use.principal, use.hour
        if ranked[key] < TRIALS_OF_ONE_HOUR and len(chosen) < most:
            ranked[key] += 1
            chosen.append(place)
    return chosen


def _fair(newest: Sequence[Trial]) -> Sequence[Trial]:
    """The newest trials without those of a principal that has too many."""
    seen, chosen = Counter[str](), list[Trial]()
    for trial in newest:
        seen[trial.principal] += 1
        if seen[trial.principal] <= MOST_TRIALS_OF_ONE:
            chosen.append(trial)
    return chosen[:MOST_TRIALS]


def _gain(differences: Sequence[float]) -> Gain:
    """The mean and its interval; without two differences, none."""
    count = len(differences)
    if count < 2:
        return NO_GAIN
    mean = _mean(differences)
    spread = math.sqrt(sum((each - mean) ** 2 for each in differences) / (count - 1))
    half = _Z * spread / math.sqrt(count)
    return Gain(mean, mean - half, mean + half)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _discounted(hits: Sequence[bool]) -> float:
    return sum(1.0 / math.log2(place + 2) for place, hit in enumerate(hits) if hit)
