"""Ranking of tools and capabilities for an intent and its clauses."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from pml_registry.domain.intents import Part

Kind = Literal["tool", "capability"]

SERVER_WEIGHT = 0.3
"""Weight of a server's fit beside that of its tool."""

SERVER_TOOLS = 3
"""Best tools of a server whose mean is the server's fit."""

MOST_RUNS = 19
"""Runs that a learned success rate is as firm as, however many there were: (2 - 0.1) / 0.1, as in
its interval."""

PRIOR_SUCCESSES = 3.0
PRIOR_FAILURES = 1.0
"""Beta prior of a capability's success: three in four, as firm as four runs."""

RELIABILITY_WEIGHT = 0.5

EVIDENCE_WEIGHT = 0.8
"""Share of a score's distance to 1 that uses close where one thing alone served all of them."""


class Target(NamedTuple):
    """A tool or capability."""

    kind: Kind
    id: str


NO_EVIDENCE: Mapping[Target, float] = {}


class Candidate(NamedTuple):
    """A tool or capability considered for an intent: the cosine in [-1, 1] of its vector with each
    part's, and the weights of its terms among the parts' terms. A tool has a server, a capability
    its judged runs and their success rate. `id` is unique in its kind."""

    kind: Kind
    id: str
    cosines: tuple[float, ...]
    weights: Mapping[str, float]
    server: str | None = None
    runs: int = 0
    success_rate: float = 0.0


class Ranked(NamedTuple):
    """A candidate and its score in [0, 1], of which evidence of use added `from_use`."""

    kind: Kind
    id: str
    score: float
    from_use: float = 0.0


def rank(
    parts: Sequence[Part],
    candidates: Sequence[Candidate],
    min_score: float,
    support: Mapping[Target, float] = NO_EVIDENCE,
) -> Sequence[Ranked]:
    """The candidates that reach `min_score`, best first; ties are ordered by kind and id.

    The order of `candidates` has no effect. `parts` begins with the whole intent. `support` is that
    of evidence.py: each one's share in [0, 1] of what served similar intents.
    """
    rarity = rarities(parts, candidates)
    fits = [_fits(at, part, candidates, rarity) for at, part in enumerate(parts)]
    scored = [
        with_evidence(
            Ranked(candidate.kind, candidate.id, with_reliability(score, candidate)), support
        )
        for candidate, score in zip(candidates, merged(fits), strict=True)
    ]
    return sorted(
        (found for found in scored if found.score >= min_score),
        key=lambda found: (-found.score, found.kind, found.id),
    )


def rarities(parts: Iterable[Part], candidates: Sequence[Candidate]) -> Mapping[str, float]:
    """IDF of each term of the parts, among the candidates."""
    having = Counter(
        term for each in candidates for term, weight in each.weights.items() if weight > 0.0
    )
    absent = len(candidates) + 0.5
    return {
        term: math.log(1.0 + (absent - having[term]) / (having[term] + 0.5))
        for part in parts
        for term in part.terms
    }


def lexical(
    part: Part, weights: Sequence[Mapping[str, float]], rarity: Mapping[str, float]
) -> Sequence[float]:
    """Share in [0, 1] of the part's terms in each candidate, by rarity and weight."""
    of_part = {term: rarity[term] for term in part.terms}
    wanted = sum(of_part.values())
    if not wanted:
        return [0.0] * len(weights)
    return [
        min(1.0, sum([rare * own[term] for term, rare in of_part.items() if term in own]) / wanted)
        for own in weights
    ]


def merged(fits: Sequence[Sequence[float]]) -> Sequence[float]:
    """Merge the fits of the whole intent (first) and of its clauses, candidate by candidate.

    score = (whole + max over clauses of fit * sqrt(strongest / clause's best)) / 2

    The factor raises the clauses that nothing fits well towards the strongest one, so that each is
    served; it keeps every score within the strongest fit.
    """
    whole, *clauses = fits
    best = [max(fit, default=0.0) for fit in clauses]
    strongest = max(best, default=0.0)
    if strongest <= 0.0:
        return whole
    scales = [math.sqrt(strongest / each) if each > 0.0 else 0.0 for each in best]
    return [
        (
            one
            + max(
                min(strongest, fit[at] * scale) for fit, scale in zip(clauses, scales, strict=True)
            )
        )
        / 2.0
        for at, one in enumerate(whole)
    ]


def with_reliability(score: float, candidate: Candidate) -> float:
    """Lower the score of what fails and raise that of what succeeds; no runs leave it as it is.

    The posterior mean of success, of `MOST_RUNS` runs at most, relative to the prior's, weighed; a
    rise is a share of the distance to 1.
    """
    if not candidate.runs:
        return score
    prior = PRIOR_SUCCESSES / (PRIOR_SUCCESSES + PRIOR_FAILURES)
    runs = min(candidate.runs, MOST_RUNS)
    posterior = (runs * candidate.success_rate + PRIOR_SUCCESSES) / (
        runs + PRIOR_SUCCESSES + PRIOR_FAILURES
    )
    lift = RELIABILITY_WEIGHT * (posterior / prior - 1.0)
    return score + ((1.0 - score) if lift > 0.0 else score) * lift


def with_evidence(ranked: Ranked, support: Mapping[Target, float]) -> Ranked:
    """Raise the score of what served similar intents by a share of its distance to 1."""
    share = support.get(Target(ranked.kind, ranked.id))
    if share is None:
        return ranked
    added = EVIDENCE_WEIGHT * share * (1.0 - ranked.score)
    return ranked._replace(score=ranked.score + added, from_use=added)


def _fits(
    at: int, part: Part, candidates: Sequence[Candidate], rarity: Mapping[str, float]
) -> Sequence[float]:
    """Fit in [0, 1] of each candidate with one part: the mean of meaning and words, with its
    server's fit where that is higher."""
    by_words = lexical(part, [each.weights for each in candidates], rarity)
    own = [
        (min(1.0, max(0.0, each.cosines[at])) + words) / 2.0
        for each, words in zip(candidates, by_words, strict=True)
    ]
    servers = _server_fits(candidates, own)
    return [
        (fit + SERVER_WEIGHT * max(fit, servers.get(each.server, 0.0))) / (1.0 + SERVER_WEIGHT)
        for each, fit in zip(candidates, own, strict=True)
    ]


def _server_fits(
    candidates: Sequence[Candidate], fits: Sequence[float]
) -> Mapping[str | None, float]:
    tools: dict[str | None, list[float]] = defaultdict(list)
    for each, fit in zip(candidates, fits, strict=True):
        if each.server is not None:
            tools[each.server].append(fit)
    best = {server: sorted(own, reverse=True)[:SERVER_TOOLS] for server, own in tools.items()}
    return {server: sum(own) / len(own) for server, own in best.items()}
