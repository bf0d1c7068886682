"""The whole suite: undisturbed runs, kills, zombies and crashes of parked runs, on one stack."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.crashes import parking_crashes, zombies
from tests.crashes.crash_plan import kind_of
from tests.crashes.crash_stack import CrashStack
from tests.crashes.kills import (
    EXECUTORS,
    Result,
    baseline_runs,
    every_point,
    kill_executors,
    some_points,
)
from tests.crashes.programs import PROGRAMS

MANY, SOME = 200, 10


@dataclass(frozen=True)
class Report:
    """All results."""

    kills: Sequence[Result]
    zombies: Sequence[Result]
    parking_crashes: Sequence[Result]
    afterwards: Sequence[str]
    fewest: int
    """The minimum number of points for a valid result."""

    @property
    def points(self) -> Sequence[Result]:
        """One result for each point at which an executor was killed as planned."""
        return [
            result
            for result in self.kills
            if result.reached and len(result.trial.crash_points) == 1
        ]

    @property
    def failures(self) -> Sequence[str]:
        """Descriptions of all failures."""
        trials, points = [*self.kills, *self.zombies, *self.parking_crashes], len(self.points)
        return [
            *(f"{result.run}: {fault}" for result in trials for fault in result.faults),
            *(f"afterwards: {fault}" for fault in self.afterwards),
            *([f"only {points} points were reached"] if points < self.fewest else ()),
        ]

    def lines(self) -> list[str]:
        """Lines for a reader; the last one is the summary."""
        kinds = Counter(kind_of(result.trial.at[-1]) for result in self.points)
        twice = sum(result.reached for result in self.kills) - len(self.points)
        zombies = sum(result.reached for result in self.zombies)
        waiting = sum(result.reached for result in self.parking_crashes)
        every = (*self.kills, *self.zombies, *self.parking_crashes)
        missed = [result.trial.name for result in every if not result.reached]
        return [
            *self.failures,
            *(f"not reached: {name}" for name in missed),
            *(f"{count:4d} killed {kind}" for kind, count in sorted(kinds.items())),
            f"{len(self.points)} points, {twice} more killed twice, {zombies} zombies, "
            f"{waiting} while parked, failures {len(self.failures)}",
        ]


async def crash_suite(
    crash_stack: CrashStack, *, every: bool, say: Callable[[str], None] = lambda _: None
) -> Report:
    """Crash at every point of every program, or at a sample of them."""
    async with crash_stack.executors(EXECUTORS):
        baseline = await baseline_runs(crash_stack)
        trials = every_point(baseline) if every else some_points(baseline)
        say(f"{len(trials)} kills, after {len(baseline)} undisturbed runs")
        kills = await kill_executors(crash_stack, trials, baseline)
    freezes = zombies.at_every_kind(baseline, list(PROGRAMS if every else ("parallel",)))
    if not every:
        freezes += zombies.across_a_park(baseline)
    points = parking_crashes.GATEWAY_POINTS if every else parking_crashes.GATEWAY_POINTS[:2]
    say(f"{len(freezes)} zombies, {2 + len(points)} while parked")
    async with crash_stack.executors(2):
        woken = await zombies.freeze_executors(crash_stack, freezes, baseline)
        afterwards = await zombies.resume_work(crash_stack, woken, baseline)
        waited = await parking_crashes.crash_while_parked(crash_stack, points, baseline)
    letters = await crash_stack.bus.dead_letters()
    dead_letters = [f"dead-lettered: {letter}" for letter in letters]
    return Report(kills, woken, waited, [*afterwards, *dead_letters], MANY if every else SOME)
