"""Evidence of use: what served the intents nearest to one, and how much of it one principal, or one
hour, can be."""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pml_registry.domain.ranking import Target

NEIGHBOURS = 10
"""Intents whose uses count, the nearest by cosine."""

NEIGHBOURS_OF_ONE = 5
"""Intents among them that one principal alone used, as long as others have some, too."""

PRIOR = 0.5
"""Evidence against everything, as firm as half a use of the very same intent."""

MOST_OF_ONE = 1.0
"""The weight of one principal's uses near an intent, at most; and of all uses of one hour."""

MOST_OF_ONE_HOUR = 0.5
"""The weight of one principal's uses in one hour near an intent, at most."""

MAX_SUPPORTED = 30
"""Tools and capabilities that uses may bring into a ranking."""

MOST_USES = 2_000
"""Uses that are kept of a scope. Beyond it, the principal that has the most loses its oldest ones,
until a tenth is free."""

NEW_OF_ONE_HOUR = 60
"""Uses of one principal in one hour that are kept."""


@dataclass(frozen=True)
class Use:
    """One principal's last use for an intent: what served, the hour since 1970, and a weight in
    [0, 1], which opinions lower. `measured`: it was ranked before it was stored."""

    principal: str
    intent: str
    served: tuple[Target, ...]
    hour: int
    weight: float = 1.0
    measured: bool = False


def support(cosines: NDArray[np.float32], uses: Sequence[Use]) -> Mapping[Target, float]:
    """The share in [0, 1) of each target in what served near an intent; `cosines` are those of the
    uses' intents with it.

    A use weighs the square of its cosine, by its own weight; the uses of one intent weigh together
    as one. What one principal, one hour, and one principal in one hour weigh is bounded.
    share = weight of the uses that it served / (weight of all uses + PRIOR)
    """
    near = _nearest(cosines, uses)
    of_intent: dict[str, float] = defaultdict(float)
    for each in near:
        of_intent[uses[each].intent] += uses[each].weight
    weights = {
        each: float(cosines[each]) ** 2 * uses[each].weight / max(1.0, of_intent[uses[each].intent])
        for each in near
    }
    for keyed, most in _BOUNDS:
        weights = _bounded(weights, {each: keyed(uses[each]) for each in near}, most)
    firm = sum(weights.values()) + PRIOR
    shares: dict[Target, float] = defaultdict(float)
    for each, weight in weights.items():
        for target in uses[each].served:
            shares[target] += weight / firm
    best = sorted(shares.items(), key=lambda share: (-share[1], share[0]))
    return {target: share for target, share in best[:MAX_SUPPORTED] if share > 0.0}


def kept(new: Sequence[Use], known: Iterable[Use], most: int) -> Sequence[int]:
    """Places of new uses that are worth storing: at most `most`, of one principal and hour
    NEW_OF_ONE_HOUR with those known, none that repeats what is known of the hour, and none without
    anything that served."""
    stored = {(use.principal, use.intent): use for use in known}
    counts = Counter((use.principal, use.hour) for use in stored.values())
    chosen: list[int] = []
    for place, use in enumerate(new):
        earlier = stored.get((use.principal, use.intent))
        repeats = earlier is not None and (earlier.hour, earlier.served) == (use.hour, use.served)
        key = use.principal, use.hour
        if use.served and not repeats and counts[key] < NEW_OF_ONE_HOUR and len(chosen) < most:
            counts[key] += 1
            stored[use.principal, use.intent] = use
            chosen.append(place)
    return chosen


def surplus(newest_first: Sequence[tuple[str, int]], most: int = MOST_USES) -> Sequence[int]:
    """Sequences of the uses to drop: each use is its principal and its sequence."""
    count = len(newest_first)
    if count <= most:
        return []
    taken = Counter[str]()
    ranked: list[tuple[int, int]] = []
    for principal, sequence in newest_first:
        taken[principal] += 1
        ranked.append((-taken[principal], sequence))
    return [sequence for _, sequence in sorted(ranked)[: count - most * 9 // 10]]


def opinion_weight(useful: float, not_useful: float) -> float:
    """The weight in (0, 1] of a use by the weights of the opinions of its run: its own success is
    one that finds it useful."""
    return (1.0 + useful) / (1.0 + useful + not_useful)


def _nearest(cosines: NDArray[np.float32], uses: Sequence[Use]) -> Sequence[int]:
    """Places of the uses of the nearest intents: of what one principal alone used, at most
    NEIGHBOURS_OF_ONE intents before those of others."""
    chosen: dict[str, list[int]] = {}
    waiting: dict[str, list[int]] = {}
    taken = Counter[str]()
    for place in _by_cosine(cosines):
        use = uses[place]
        if use.intent in chosen:
            chosen[use.intent].append(place)
        elif len(chosen) == NEIGHBOURS:
            break
        elif taken[use.principal] < NEIGHBOURS_OF_ONE:
            taken[use.principal] += 1
            chosen[use.intent] = [*waiting.pop(use.intent, ()), place]
        else:
            waiting.setdefault(use.intent, []).append(place)
    for intent in list(waiting)[: NEIGHBOURS - len(chosen)]:
        chosen[intent] = waiting[intent]
    return [place for places in chosen.values() for place in places]


def _by_cosine(cosines: NDArray[np.float32]) -> Iterator[int]:
    """Yield the places of positive cosines, the highest first."""
    for place in np.argsort(-cosines, kind="stable").tolist():
        if cosines[place] <= 0.0:
            return
        yield place


def _bounded(
    weights: Mapping[int, float], keys: Mapping[int, Hashable], most: float
) -> dict[int, float]:
    """Scale the weights of each key down to `most` in all."""
    totals: dict[Hashable, float] = defaultdict(float)
    for each, weight in weights.items():
        totals[keys[each]] += weight
    return {
        each: weight * min(1.0, most / totals[keys[each]]) if weight else 0.0
        for each, weight in weights.items()
    }


def _principal_and_hour(use: Use) -> Hashable:
    return use.principal, use.hour


def _principal(use: Use) -> Hashable:
    return use.principal


def _hour(use: Use) -> Hashable:
    return use.hour


_BOUNDS: Sequence[tuple[Callable[[Use], Hashable], float]] = (
    (_principal_and_hour, MOST_OF_ONE_HOUR),
    (_principal, MOST_OF_ONE),
    (_hour, MOST_OF_ONE),
)
