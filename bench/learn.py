"""Learned success rates against hidden ones that change midway, with and without replay of values.

200 capabilities have hidden success rates; half of them get others in the middle of 50,000 runs.
The value of a capability is learned from each run by the rule of the learner. With replay, after
each run some stored runs are sampled by priority and taught again, weighted so that the preference
is undone (domain/replay.py). For each: the mean distance of values from hidden rates over time, and
the runs of a capability from its change until its value has passed half way to the new rate, of
those that changed by 0.3 or more; means over seeds with 95 % intervals (Student's t). Pure domain,
no server.
`uv run python bench/learn.py [--seeds N] [--runs N] [--replays N]`
"""

import argparse
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, stdev

sys.path.insert(0, str(Path(__file__).parent.parent))  # when run as a script

from pml_common.contracts.capability import PathStats
from pml_learner.domain.priority import priority
from pml_learner.domain.replay import ReplayBuffer, ReplayRule
from pml_learner.domain.temporal_difference import TdRule

CAPABILITIES, CHANGED, MARKS = 200, 0.5, 10
LEAST_CHANGE = 0.3
BUFFER = 20_000
PATH = ("n1",)
DURATION_MS = 10.0
T_95 = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26)
"""Student's t for 1 to 9 degrees of freedom."""


@dataclass
class Measured:
    """The figures of one seed: the error at each mark, and the runs until each change showed."""

    errors: list[float] = field(default_factory=list[float])
    detected: list[int] = field(default_factory=list[int])
    unseen: int = 0


@dataclass
class World:
    """Capabilities with hidden rates, and what is learned of them."""

    rates: list[float]
    values: list[float | None]
    old_rates: list[float] = field(default_factory=list[float])
    since: dict[int, int] = field(default_factory=dict[int, int])
    """Runs since the change, of those whose change is not seen yet."""

    @property
    def error(self) -> float:
        """The mean distance of known values from the hidden rates."""
        both = zip(self.values, self.rates, strict=True)
        return mean(abs(value - rate) for value, rate in both if value is not None)

    def change(self, dice: random.Random) -> None:
        """Give some capabilities other rates."""
        self.old_rates = list(self.rates)
        for which in dice.sample(range(CAPABILITIES), int(CAPABILITIES * CHANGED)):
            self.rates[which] = dice.random()
            if abs(self.rates[which] - self.old_rates[which]) >= LEAST_CHANGE:
                self.since[which] = 0

    def shows(self, which: int) -> bool:
        """Whether the value of a capability has passed half way to its new rate."""
        old, new = self.old_rates[which], self.rates[which]
        value = self.values[which]
        return value is not None and (value - (old + new) / 2) * (new - old) >= 0


def learned(value: float | None, success: bool, rule: TdRule) -> float:
    """Learn from one run; the first observation initialises the value."""
    return float(success) if value is None else rule.step(value, float(success))


def surprise(value: float | None, success: bool) -> float:
    """Compute the priority of a run by a value."""
    known = None
    if value is not None:
        known = PathStats(path=PATH, count=1, success_rate=value, mean_duration_ms=DURATION_MS)
    return priority(known, success=success, duration_ms=DURATION_MS)


def simulate(seed: int, runs: int, replays: int) -> Measured:
    """Learn from simulated runs; `replays` past runs after each."""
    dice, choice = random.Random(seed), random.Random(seed + 1)  # noqa: S311 - not for secrets
    rule, found = TdRule(), Measured()
    world = World([dice.random() for _ in range(CAPABILITIES)], [None] * CAPABILITIES)
    buffer, stored = ReplayBuffer[int](BUFFER, ReplayRule(steps=runs)), list[tuple[int, bool]]()
    for number in range(runs):
        if number == runs // 2:
            world.change(dice)
        which = dice.randrange(CAPABILITIES)
        success = dice.random() < world.rates[which]
        before = world.values[which]
        world.values[which] = learned(before, success, rule)
        if replays:
            stored.append((which, success))
            buffer.put(number, surprise(before, success))
            for past in buffer.sample(replays, choice):
                of, ended = stored[past.key]
                smaller = TdRule(alpha=rule.alpha * past.weight)
                world.values[of] = learned(world.values[of], ended, smaller)
                buffer.put(past.key, surprise(world.values[of], ended))
        if which in world.since:
            world.since[which] += 1
            if world.shows(which):
                found.detected.append(world.since.pop(which))
        if (number + 1) % (runs // MARKS) == 0:
            found.errors.append(world.error)
    buffer.check_valid()
    found.unseen = len(world.since)
    return found


def interval(figures: Sequence[float]) -> str:
    """Return the mean and half the width of its 95 % interval."""
    if len(figures) < 2:
        return f"{mean(figures):.4f}"
    t = T_95[min(len(figures) - 2, len(T_95) - 1)]
    return f"{mean(figures):.4f} ± {t * stdev(figures) / len(figures) ** 0.5:.4f}"


def main() -> None:
    """Print the figures without replay, with it, and their difference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--replays", type=int, default=1)
    given = parser.parse_args()
    off, on = (
        [simulate(seed, given.runs, replays) for seed in range(given.seeds)]
        for replays in (0, given.replays)
    )
    print("runs        replay off          replay on           on - off")
    for mark in range(MARKS):
        without, with_it = [e.errors[mark] for e in off], [e.errors[mark] for e in on]
        apart = [b - a for a, b in zip(without, with_it, strict=True)]
        at = given.runs // MARKS * (mark + 1)
        print(f"{at:<10}  {interval(without):<18}  {interval(with_it):<18}  {interval(apart)}")
    for name, some in (("off", off), ("on", on)):
        until = [mean(each.detected) for each in some if each.detected]
        longest = max((max(each.detected) for each in some if each.detected), default=0)
        unseen = sum(each.unseen for each in some)
        print(
            f"runs until a change showed, replay {name}: {interval(until)}, "
            f"longest {longest}, not seen {unseen}"
        )


if __name__ == "__main__":
    main()
