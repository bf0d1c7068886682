"""Runs of all programs on one stack, a few at a time, and the results."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle

from tests.binding.attacks import Attack
from tests.binding.lies import LIES, NOT_TAKEN
from tests.binding.stage import WITHIN_S, Lane, Stage
from tests.binding.trial import Manner, Result, Trial, tried

TOLD_EVERY = 500
MANNERS: Sequence[Manner] = ("agrees", "refuses")


@dataclass(frozen=True)
class Report:
    """All results."""

    results: Sequence[Result]

    @property
    def failures(self) -> list[str]:
        """Descriptions of all failures."""
        found = [
            f"{result.trial.name}: {fault}" for result in self.results for fault in result.faults
        ]
        return [*found, *(fault for result in self.results for fault in _dishonest(result))]

    def lines(self) -> list[str]:
        """Lines for a reader; the last one is the summary."""
        ends = Counter(result.ended for result in self.results)
        told = ", ".join(f"{count} {end}" for end, count in ends.most_common())
        verdicts = [result.verdict for result in self.results]
        return [
            *self.failures,
            f"ended: {told}",
            f"calls of ask-tools that arrived: {sum(v.bound for v in verdicts)} as shown, "
            f"{sum(v.computed for v in verdicts)} with arguments told to be computed, "
            f"{sum(v.asked for v in verdicts)} asked about by themselves",
            f"{len(self.results)} runs, {sum(bool(v.holes) for v in verdicts)} with a hole, "
            f"{len(self.failures)} failures",
        ]


def _dishonest(result: Result) -> Iterator[str]:
    """Violations by an honest program: its calls were not allowed."""
    wanted, trial, verdict = result.trial.attack.honest, result.trial, result.verdict
    if wanted is None or trial.lie is not None:
        return
    got = verdict.bound + verdict.computed
    if (result.ended, result.questions, got) != ("success", 1, wanted):
        yield (
            f"{trial.name}: an honest program ended as {result.ended} with {got} calls of "
            f"{wanted} and {result.questions} questions"
        )


def as_it_is(attacks: Sequence[Attack]) -> list[Trial]:
    """Every program, with a person who approves and with one who refuses."""
    return [Trial(attack, None, manner) for attack in attacks for manner in MANNERS]


def with_lies(attacks: Sequence[Attack], *, every: bool = True) -> list[Trial]:
    """Every program with every lie, or with one each; approving and refusing persons alternate. The
    detected lie is used with a few programs only: each waits in vain."""
    manners = cycle(MANNERS)
    pairs = (
        [(attack, lie) for attack in attacks for lie in LIES]
        if every
        else list(zip(attacks, cycle(LIES), strict=False))
    )
    return [
        Trial(attack, lie, next(manners))
        for attack, lie in pairs
        if lie != NOT_TAKEN or attack.shape == "queries"
    ]


async def suite(
    stage: Stage, trials: Sequence[Trial], say: Callable[[str], None] = lambda _: None
) -> Report:
    """Run all, one at a time on each lane."""
    waiting, results = iter(trials), list[Result]()

    async def serve(lane: Lane) -> None:
        for trial in waiting:
            async with asyncio.timeout(WITHIN_S):
                result = await tried(stage, lane, trial)
            results.append(result)
            if len(results) % TOLD_EVERY == 0:
                say(f"{len(results)} of {len(trials)} runs")
            for fault in result.faults:
                say(f"{trial.name}: {fault}")

    async with asyncio.TaskGroup() as serving:
        for lane in stage.lanes:
            serving.create_task(serve(lane))
    return Report(results)
