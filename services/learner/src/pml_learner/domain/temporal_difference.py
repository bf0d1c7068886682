"""Temporal-difference learning: the rule, the estimate that principals share, and its interval.

V ← V + alpha * (actual - V), with actual 1 for a success and 0 for a failure; the first actual is
the first V. Each principal has a V of its own, and the estimate is their mean, weighed by how much
they may say: Σ over hours of min(outcomes in the hour, HOURLY), at most MOST.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt
from typing import Final, NamedTuple

HOURLY: Final = 5
"""The weight that a principal can gain in an hour."""
MOST: Final = 20
"""The largest weight of a principal."""
KEPT: Final = 8
"""The principals with a V of their own; later ones share the one with the index KEPT."""
EARLIER: Final = KEPT + 1
"""Index of the V from before principals were told apart; each weight gained takes from its own."""

ALPHA: Final = 0.1
"""The learning rate."""
MEMORY: Final = 19.0
"""The number of outcomes whose plain mean varies as V does: (2 - ALPHA) / ALPHA."""

_Z: Final = 1.959963984540054
"""Two-sided 95 %."""


@dataclass(frozen=True)
class TdRule:
    """`alpha` is the learning rate. Everything learned is learned by the same `version`: a change
    of the rules is a new one."""

    alpha: float = ALPHA
    version: int = 1

    def step(self, value: float, actual: float, times: int = 1) -> float:
        """Update `value` towards `actual`, once or `times` in a row."""
        return actual + (1.0 - self.alpha) ** times * (value - actual)


class Voice(NamedTuple):
    """The V of a principal, by its index, and its weight; `in_hour` outcomes came in `hour`, the
    last one, in hours of Unix time."""

    who: int
    value: float
    weight: int = 1
    hour: int = 0
    in_hour: int = 1


class Estimate(NamedTuple):
    """A success rate learned from as many outcomes as were `seen`."""

    seen: int = 0
    voices: tuple[Voice, ...] = ()

    @property
    def value(self) -> float:
        """The success rate; 0 before the first outcome."""
        if len(self.voices) == 1:  # the usual case
            return self.voices[0].value
        weight, total = 0, 0.0
        for voice in self.voices:
            weight += voice.weight
            total += voice.weight * voice.value
        return min(1.0, max(0.0, total / weight)) if weight else 0.0

    def interval(self) -> tuple[float, float]:
        """Return the bounds between which the rate lies with 95 % confidence (Wilson), for as many
        outcomes as V remembers; (0, 1) before the first."""
        outcomes = min(float(self.seen), MEMORY)
        if not outcomes:
            return 0.0, 1.0
        spread, value = _Z * _Z / outcomes, self.value
        middle = (value + spread / 2) / (1 + spread)
        half = sqrt(value * (1 - value) * spread + spread * spread / 4) / (1 + spread)
        return max(0.0, min(value, middle - half)), min(1.0, max(value, middle + half))

    def observed(
        self, who: int, hour: int, actuals: Iterable[tuple[bool, int]], rule: TdRule
    ) -> "Estimate":
        """Learn from what one run of a principal showed: successes and failures, each so many times
        in a row, at least one. They weigh as one."""
        known = next((voice for voice in self.voices if voice.who == who), None)
        value, seen = None if known is None else known.value, self.seen
        for success, times in actuals:
            actual = float(success)
            value = actual if value is None else rule.step(value, actual, times)
            seen += times
        heard = _heard(known, who, hour, value or 0.0)
        if len(self.voices) == 1 and known is not None:  # the usual case
            return Estimate(seen, (heard,))
        grown = heard.weight - (known.weight if known else 0)
        others = (_faded(voice, grown) for voice in self.voices if voice.who != who)
        kept = [voice for voice in others if voice.weight > 0]
        return Estimate(seen, tuple(sorted([*kept, heard])))


def _heard(known: Voice | None, who: int, hour: int, value: float) -> Voice:
    """Count an outcome in an hour; one of an earlier hour counts in the last."""
    if known is None:
        return Voice(who, value, hour=hour)
    in_hour = 1 if hour > known.hour else known.in_hour + 1
    weight = known.weight + 1 if in_hour <= HOURLY and known.weight < MOST else known.weight
    return Voice(who, value, weight, hour if hour > known.hour else known.hour, in_hour)


def _faded(voice: Voice, grown: int) -> Voice:
    return voice._replace(weight=voice.weight - grown) if voice.who == EARLIER else voice
