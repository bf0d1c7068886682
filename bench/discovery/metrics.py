"""Quality of rankings: recall, nDCG and reciprocal rank, with bootstrap intervals over tasks."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

RECALLS = (1, 3, 5, 10)
NDCGS = (5, 10)
METRICS = (*(f"R@{k}" for k in RECALLS), *(f"nDCG@{k}" for k in NDCGS), "MRR")
_SAMPLES = 2000


@dataclass(frozen=True)
class Estimate:
    """A mean over tasks and its 95 % interval."""

    mean: float
    low: float
    high: float


def quality(ranked: Sequence[str], relevant: Collection[str]) -> Mapping[str, float]:
    """Every metric of one ranking, best first; `relevant` is not empty."""
    hits = [id_ in relevant for id_ in ranked]
    first = hits.index(True) + 1 if True in hits else math.inf
    return {
        **{f"R@{k}": sum(hits[:k]) / len(relevant) for k in RECALLS},
        **{f"nDCG@{k}": _gain(hits[:k]) / _gain([True] * min(k, len(relevant))) for k in NDCGS},
        "MRR": 1.0 / first,
    }


def estimates(measured: Sequence[Mapping[str, float]], seed: int) -> Mapping[str, Estimate]:
    """Means of every metric over tasks, with percentiles of resampled means."""
    values = np.array([[each[metric] for metric in METRICS] for each in measured])
    chosen = np.random.default_rng(seed).integers(len(values), size=(_SAMPLES, len(values)))
    low, high = np.percentile(values[chosen].mean(axis=1), (2.5, 97.5), axis=0)
    return {
        metric: Estimate(float(mean), float(below), float(above))
        for metric, mean, below, above in zip(METRICS, values.mean(axis=0), low, high, strict=True)
    }


def _gain(hits: Sequence[bool]) -> float:
    """Discounted cumulative gain."""
    return sum(1.0 / math.log2(place + 2) for place, hit in enumerate(hits) if hit)
