"""Ranking of tools and capabilities for an intent."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["tool", "capability"]

COVERAGE_WEIGHT = 0.3
"""Share of the distance to 1 that full word coverage adds to a score."""


@dataclass(frozen=True)
class Candidate:
    """A tool or capability considered for an intent: cosine similarity in [-1, 1] of their vectors,
    and the share in [0, 1] of the intent's words in its document. `id` is unique in its kind."""

    kind: Kind
    id: str
    cosine: float
    coverage: float


@dataclass(frozen=True)
class Ranked:
    """A candidate and its score in [0, 1]."""

    kind: Kind
    id: str
    score: float


def score(candidate: Candidate) -> float:
    """Combine meaning and words; common words raise the score and their absence does not lower it:

    s = c + (1 - c) * COVERAGE_WEIGHT * coverage, where c is the cosine, at least 0.
    """
    meaning = min(1.0, max(0.0, candidate.cosine))
    return min(1.0, meaning + (1.0 - meaning) * COVERAGE_WEIGHT * candidate.coverage)


def rank(candidates: Sequence[Candidate], min_score: float) -> Sequence[Ranked]:
    """The candidates that reach `min_score`, best first; ties are ordered by kind and id."""
    scored = [Ranked(found.kind, found.id, score(found)) for found in candidates]
    return sorted(
        (found for found in scored if found.score >= min_score),
        key=lambda found: (-found.score, found.kind, found.id),
    )
