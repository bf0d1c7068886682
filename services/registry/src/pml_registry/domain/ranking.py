"""Ranking tools and capabilities for an intent (D1, D2)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["tool", "capability"]

WORDS_LIFT = 0.3
"""How much of what a score misses shared words can add."""


@dataclass(frozen=True)
class Candidate:
    """Something that may serve an intent: cosine similarity in [-1, 1] of the two meanings, and
    the share in [0, 1] of the intent's words that its document has. `id` is unique in its kind."""

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
    """Meaning first; words in common lift it towards 1 and their absence takes nothing away:

    s = c + (1 - c) * WORDS_LIFT * coverage, where c is the cosine, at least 0.
    """
    meaning = min(1.0, max(0.0, candidate.cosine))
    return min(1.0, meaning + (1.0 - meaning) * WORDS_LIFT * candidate.coverage)


def rank(candidates: Sequence[Candidate], min_score: float) -> Sequence[Ranked]:
    """The candidates that reach `min_score`, best first; of equals, by kind and id."""
    scored = [Ranked(found.kind, found.id, score(found)) for found in candidates]
    return sorted(
        (found for found in scored if found.score >= min_score),
        key=lambda found: (-found.score, found.kind, found.id),
    )
