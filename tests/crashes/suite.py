"""The whole: undisturbed runs, then kills, then zombies, on one stack."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.crashes import zombies
from tests.crashes.ground import Ground
from tests.crashes.kills import EXECUTORS, Result, calm_runs, every_point, killed, some_points
from tests.crashes.lives import kind_of
from tests.crashes.programs import PROGRAMS


@dataclass(frozen=True)
class Report:
    """What came of everything."""

    kills: Sequence[Result]
    zombies: Sequence[Result]
    afterwards: Sequence[str]

    @property
    def reached(self) -> Sequence[Result]:
        """The kills that came about where they were meant to."""
        return [result for result in self.kills if result.reached]

    @property
    def failures(self) -> Sequence[str]:
        """Everything that is wrong, in words."""
        trials = [*self.kills, *self.zombies]
        return [f"{r.trial.name}: {f}" for r in trials for f in r.faults] + [
            f"afterwards: {fault}" for fault in self.afterwards
        ]

    def lines(self) -> list[str]:
        """For a reader; the last line sums up."""
        reached = self.reached
        kinds = Counter(kind_of(result.trial.at[0]) for result in reached)
        points = {result.trial for result in reached if len(result.trial.at) == 1}
        twice = len(reached) - len(points)
        missed = [result.trial.name for result in self.kills if not result.reached]
        return [
            *self.failures,
            *(f"not come to: {name}" for name in missed),
            *(f"{count:4d} killed {kind}" for kind, count in sorted(kinds.items())),
            f"{len(points)} points, {twice} more killed twice, {len(self.zombies)} zombies, "
            f"failures {len(self.failures)}",
        ]


async def crash_suite(
    ground: Ground, *, every: bool, say: Callable[[str], None] = lambda _: None
) -> Report:
    """Every point, or of each program one of each kind."""
    async with ground.executors(EXECUTORS):
        calm = await calm_runs(ground)
        trials = every_point(calm) if every else some_points(calm)
        say(f"{len(trials)} kills, after {len(calm)} undisturbed runs")
        kills = await killed(ground, trials, calm)
    chosen = PROGRAMS if every else ("parallel",)
    freezes = zombies.at_every_kind(calm, list(chosen))
    say(f"{len(freezes)} zombies")
    async with ground.executors(2):
        woken = await zombies.frozen(ground, freezes, calm)
        afterwards = await zombies.of_use_again(ground, freezes, calm)
    letters = await ground.bus.dead_letters()
    buried = [f"buried: {letter}" for letter in letters]
    return Report(kills, woken, [*afterwards, *buried])
