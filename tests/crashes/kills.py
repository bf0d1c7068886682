"""Every point of a run at which its executor can die, and what comes of it."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from tests.crashes.crash_plan import SPARED, Line, Plan, kind_of, points
from tests.crashes.crash_stack import Ground, key_of, workflow_of
from tests.crashes.programs import CAPABILITIES, PROGRAMS
from tests.crashes.verdict import Told, faults

TOGETHER = 8
EXECUTORS = 3
TRIES = 3
AGAIN = ("append 2: before", "append 2: after", "append 3: before")
"""Where a second executor dies: as it takes over, when it has, and before it appends its own."""
LEFT_OUT = (0, 3)
PARK_SAMPLE = ("before mark", "after mark", "before parking", "after parking")

At = tuple[str, ...]
"""At which point each life is killed, as in a `Plan`."""


@dataclass(frozen=True)
class Calm:
    """An undisturbed run: what it told, and the points that each life of it came to."""

    told: Told
    lives: Sequence[Sequence[str]]

    @property
    def deaths(self) -> list[At]:
        """One at each point of each life."""
        return [
            (SPARED,) * number + (point,)
            for number, life in enumerate(self.lives)
            for point in life
        ]

    @property
    def parks(self) -> bool:
        """Whether it waits for a person in its midst."""
        return len(self.lives) > 1


@dataclass(frozen=True)
class Trial:
    """A program whose executors die, one after the other, each at its point."""

    program: str
    at: At

    @property
    def name(self) -> str:
        """Unique among trials."""
        deaths = [
            f"{point} of life {life}" if life > 1 else point
            for life, point in enumerate(self.at, 1)
            if point != SPARED
        ]
        return f"{self.program}, {', then '.join(deaths)}"

    @property
    def deaths(self) -> At:
        """The points alone."""
        return tuple(point for point in self.at if point != SPARED)


@dataclass(frozen=True)
class Result:
    """What came of a trial, the last time it was run; not `reached`: the run was over, or
    another's, before its point."""

    trial: Trial
    run: str
    reached: bool
    faults: Sequence[str]


async def calm_runs(ground: Ground) -> dict[str, Calm]:
    """Every program once, undisturbed; the capabilities that they call are learned first."""
    for capability, code in CAPABILITIES.items():
        await ground.learn(capability, code)

    async def run(program: str) -> Calm:
        name = key_of(f"{program}-calm")
        answer = await ground.answer(program, name)
        assert PROGRAMS[program].fits(answer), answer
        diary = await ground.settled(workflow_of(name))
        lives = max(line.life for line in diary)
        told = await ground.told(name, answer)
        return Calm(told, [points(diary, life) for life in range(1, lives + 1)])

    runs = await asyncio.gather(*map(run, PROGRAMS))
    return dict(zip(PROGRAMS, runs, strict=True))


async def killed(ground: Ground, trials: Sequence[Trial], calm: Mapping[str, Calm]) -> list[Result]:
    """The trials, some at a time."""
    room = asyncio.Semaphore(TOGETHER)

    async def one(trial: Trial) -> Result:
        async with room:
            return await tried(lambda run: _killed(ground, trial, calm[trial.program], run), trial)

    return await asyncio.gather(*map(one, trials))


async def tried(run_as: Callable[[str], Awaitable[Result]], trial: Trial) -> Result:
    """A trial, again if the machine was too slow for it: a sign of life that comes late hands the
    run to another executor before the point."""
    result = await run_as(key_of(f"{trial.name}, try 1"))
    for attempt in range(2, TRIES + 1):
        if not result.reached:
            result = await run_as(key_of(f"{trial.name}, try {attempt}"))
    return result


async def _killed(ground: Ground, trial: Trial, calm: Calm, run: str) -> Result:
    workflow = workflow_of(run)
    ground.diaries.plan(workflow, Plan(trial.at, signal.SIGKILL))
    try:
        answer = await ground.answer(trial.program, run)
        diary = await ground.settled(workflow)
    except (TimeoutError, AssertionError) as error:
        return Result(trial, run, True, [f"it does not end: {error}"])
    found = faults(await ground.told(run, answer), calm.told)
    return Result(trial, run, _died_at(diary) == trial.deaths, found)


def _died_at(diary: Sequence[Line]) -> At:
    """The last point of each life that has no end; none where it came to none."""
    lives = dict.fromkeys(line.life for line in diary)
    ended = {line.life for line in diary if line.point is None and line.what != "begins"}
    return tuple((points(diary, life) or [""])[-1] for life in lives if life not in ended)


def every_point(calm: Mapping[str, Calm]) -> list[Trial]:
    """One trial a point; at some the executor that takes over dies, too, as it replays."""
    once = [Trial(program, at) for program, run in calm.items() for at in run.deaths]
    twice = [
        Trial(program, (*run.deaths[len(run.deaths) * part // 4], again))
        for program, run in calm.items()
        for part, again in enumerate(AGAIN, 1)
    ]
    return once + twice


def some_points(calm: Mapping[str, Calm]) -> list[Trial]:
    """Of each program a point of five of the seven kinds, other ones for each; one dies twice. Of
    one that parks each kind of point around the first park, and the first of the life after it."""
    once = [
        Trial(program, of_kind[shift % len(of_kind)])
        for shift, (program, run) in enumerate(calm.items())
        for place, of_kind in enumerate(by_kind(run.deaths).values(), shift)
        if not run.parks and place % 7 not in LEFT_OUT
    ]
    run = calm["parking"]
    parked = [by_kind(run.deaths)[kind][0] for kind in PARK_SAMPLE]
    resumed = (SPARED, run.lives[1][0])
    middle = calm["parallel"].deaths[len(calm["parallel"].deaths) // 2]
    return [
        *once,
        Trial("parallel", (*middle, AGAIN[0])),
        *(Trial("parking", at) for at in (*parked, resumed)),
    ]


def by_kind(deaths: Sequence[At]) -> dict[str, list[At]]:
    """Deaths before appends, after appends and so on."""
    found: dict[str, list[At]] = {}
    for at in deaths:
        found.setdefault(kind_of(at[-1]), []).append(at)
    return found
