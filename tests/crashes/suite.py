"""The whole: undisturbed runs, then kills, then zombies, on one stack."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.crashes import waits, zombies
from tests.crashes.crash_plan import kind_of
from tests.crashes.crash_stack import Ground
from tests.crashes.kills import EXECUTORS, Result, calm_runs, every_point, killed, some_points
from tests.crashes.programs import PROGRAMS

MANY, SOME = 200, 36


@dataclass(frozen=True)
class Report:
    """What came of everything."""

    kills: Sequence[Result]
    zombies: Sequence[Result]
    waits: Sequence[Result]
    afterwards: Sequence[str]
    fewest: int
    """Points without which nothing is shown."""

    @property
    def points(self) -> Sequence[Result]:
        """One for each point at which an executor was killed as it was meant to."""
        return [result for result in self.kills if result.reached and len(result.trial.deaths) == 1]

    @property
    def failures(self) -> Sequence[str]:
        """Everything that is wrong, in words."""
        trials, points = [*self.kills, *self.zombies, *self.waits], len(self.points)
        return [
            *(f"{result.run}: {fault}" for result in trials for fault in result.faults),
            *(f"afterwards: {fault}" for fault in self.afterwards),
            *([f"only {points} points were come to"] if points < self.fewest else ()),
        ]

    def lines(self) -> list[str]:
        """For a reader; the last line sums up."""
        kinds = Counter(kind_of(result.trial.at[-1]) for result in self.points)
        twice = sum(result.reached for result in self.kills) - len(self.points)
        zombies = sum(result.reached for result in self.zombies)
        waiting = sum(result.reached for result in self.waits)
        every = (*self.kills, *self.zombies, *self.waits)
        missed = [result.trial.name for result in every if not result.reached]
        return [
            *self.failures,
            *(f"not come to: {name}" for name in missed),
            *(f"{count:4d} killed {kind}" for kind, count in sorted(kinds.items())),
            f"{len(self.points)} points, {twice} more killed twice, {zombies} zombies, "
            f"{waiting} while they wait, failures {len(self.failures)}",
        ]


async def crash_suite(
    ground: Ground, *, every: bool, say: Callable[[str], None] = lambda _: None
) -> Report:
    """Every point of every program, or a sample of them."""
    async with ground.executors(EXECUTORS):
        calm = await calm_runs(ground)
        trials = every_point(calm) if every else some_points(calm)
        say(f"{len(trials)} kills, after {len(calm)} undisturbed runs")
        kills = await killed(ground, trials, calm)
    freezes = zombies.at_every_kind(calm, list(PROGRAMS if every else ("parallel",)))
    if not every:
        freezes += zombies.across_a_park(calm)
    points = waits.GATEWAY_POINTS if every else waits.GATEWAY_POINTS[:1]
    say(f"{len(freezes)} zombies, {2 + len(points)} while they wait")
    async with ground.executors(2):
        woken = await zombies.frozen(ground, freezes, calm)
        afterwards = await zombies.of_use_again(ground, woken, calm)
        waited = await waits.while_it_waits(ground, points, calm)
    letters = await ground.bus.dead_letters()
    buried = [f"buried: {letter}" for letter in letters]
    return Report(kills, woken, waited, [*afterwards, *buried], MANY if every else SOME)
