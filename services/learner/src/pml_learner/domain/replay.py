"""Prioritized experience replay: which traces to look at again, and how much each then counts.

A trace is sampled with P(i) = p_i^alpha / sum of p^alpha, so that surprising ones come up more
often than they happened; the weight (N P(i))^-beta undoes that, wholly at beta = 1. Schaul et al.,
"Prioritized Experience Replay", 2016.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import isclose, isfinite
from typing import Final, Generic, Protocol, TypeVar
from uuid import UUID

from pml_common.contracts.capability import Learning
from pml_learner.domain.priority import priority

K = TypeVar("K", bound=Hashable)

RunKey = tuple[UUID, datetime]
"""A stored run: the id of its trace, and its time."""

LEAST: Final = 0.01
"""The priority of a trace that was wholly expected: it still has a chance."""


class Dice(Protocol):
    """A seeded generator of random numbers."""

    def random(self) -> float:
        """The next number in [0, 1)."""
        ...


class InvalidReplay(Exception):
    """The buffer contradicts itself; says in what."""


@dataclass(frozen=True)
class ReplayRule:
    """`alpha` is how much priorities count (0: not at all), `beta` how much of that the weights
    undo in the first of `steps` samples; from the last of these on, all of it."""

    alpha: float = 0.6
    beta: float = 0.4
    steps: int = 1000

    def beta_at(self, step: int) -> float:
        """Beta of the sample `step`, counted from 0: it grows linearly to 1."""
        return min(1.0, self.beta + (1.0 - self.beta) * step / self.steps)


@dataclass(frozen=True)
class Sampled(Generic[K]):
    """A trace that was chosen with a `probability`; `weight` is relative to the largest in its
    sample."""

    key: K
    probability: float
    weight: float


class ReplayBuffer(Generic[K]):
    """The last `capacity` traces by their keys, with their priorities in [0, 1]: a binary tree
    whose nodes hold the sums below them, so that a sample costs the logarithm of their number."""

    def __init__(self, capacity: int, rule: ReplayRule) -> None:
        self._rule = rule
        self._leaves = 1 << max(0, capacity - 1).bit_length()
        self._sums = [0.0] * (2 * self._leaves)
        self._capacity = capacity
        self._places: dict[K, int] = {}
        self._keys: list[K] = []
        self._next = 0
        self._samples = 0

    def __len__(self) -> int:
        """The number of traces."""
        return len(self._keys)

    def put(self, key: K, priority: float) -> None:
        """Add a trace in place of the oldest one, or set the priority of one that is there. Raises
        InvalidReplay."""
        if not (isfinite(priority) and 0 <= priority <= 1):
            raise InvalidReplay(f"a priority is in [0, 1], not {priority}")
        place = self._places.get(key)
        if place is None:
            place = self._next
            self._next = (place + 1) % self._capacity
            if place < len(self._keys):
                del self._places[self._keys[place]]
                self._keys[place] = key
            else:
                self._keys.append(key)
            self._places[key] = place
        self._set(place, max(LEAST, priority) ** self._rule.alpha)

    def sample(self, count: int, dice: Dice) -> Sequence[Sampled[K]]:
        """Choose traces, some maybe more than once; none of an empty buffer."""
        if not self._keys:
            return ()
        total, beta = self._sums[1], self._rule.beta_at(self._samples)
        self._samples += 1
        places = [self._find(dice.random() * total) for _ in range(count)]
        chances = [self._sums[self._leaves + place] / total for place in places]
        weights = [(len(self._keys) * chance) ** -beta for chance in chances]
        most = max(weights, default=1.0)
        return [
            Sampled(self._keys[place], chance, weight / most)
            for place, chance, weight in zip(places, chances, weights, strict=True)
        ]

    def check_valid(self) -> None:
        """Raise InvalidReplay where sums, places and keys do not agree."""
        if len(self._keys) > self._capacity:
            raise InvalidReplay(f"{len(self._keys)} traces in a buffer for {self._capacity}")
        if self._places != {key: place for place, key in enumerate(self._keys)}:
            raise InvalidReplay("keys and places do not agree")
        for node in range(1, self._leaves):
            below = self._sums[2 * node] + self._sums[2 * node + 1]
            if not isclose(self._sums[node], below, abs_tol=1e-9):
                raise InvalidReplay(f"node {node} has {self._sums[node]}, below it is {below}")
        least = LEAST**self._rule.alpha
        for place, value in enumerate(self._sums[self._leaves :]):
            if (least <= value <= 1) if place < len(self._keys) else value == 0:
                continue
            raise InvalidReplay(f"place {place} counts {value}")

    def _set(self, place: int, value: float) -> None:
        node = self._leaves + place
        self._sums[node] = value
        while node > 1:
            node //= 2
            self._sums[node] = self._sums[2 * node] + self._sums[2 * node + 1]

    def _find(self, at: float) -> int:
        """Return the place at which the sum from the left passes `at`."""
        node = 1
        while node < self._leaves:
            node *= 2
            if at >= self._sums[node] and self._sums[node + 1] > 0:
                at -= self._sums[node]
                node += 1
        return node - self._leaves


@dataclass(frozen=True)
class PastRun:
    """A stored run, as far as its priority follows from it."""

    path: tuple[str, ...]
    success: bool
    duration_ms: float
    priority: float


def refreshed(run: PastRun, learning: Learning) -> float:
    """The priority of a run by the present values; as it was, where its path is no longer known."""
    known = next((stats for stats in learning.paths if stats.path == run.path), None)
    if known is None:
        return run.priority
    return priority(known, success=run.success, duration_ms=max(0.0, run.duration_ms))
