"""Kills of executors at every point of a run, and their results."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from tests.crashes.crash_plan import NO_CRASH, CrashPlan, LogEntry, kind_of, points
from tests.crashes.crash_stack import CrashStack, key_of, workflow_of
from tests.crashes.programs import CAPABILITIES, PROGRAMS
from tests.crashes.verdict import RunOutcome, faults

TOGETHER = 8
EXECUTORS = 3
TRIES = 3
SECOND_CRASH_POINTS = ("append 2: before", "append 2: after", "append 3: before")
"""Points of a second crash: while taking over, after it, and before the first own append."""
KINDS = 7
PARK_SAMPLE = ("before mark", "after mark", "before parking", "after parking")

CrashPoints = tuple[str, ...]
"""The crash point of each command run, as in a `CrashPlan`."""


@dataclass(frozen=True)
class Baseline:
    """An undisturbed run: its outcome, and the points that each of its command runs reached."""

    outcome: RunOutcome
    command_runs: Sequence[Sequence[str]]

    @property
    def crash_points(self) -> list[CrashPoints]:
        """One crash at each point of each command run."""
        return [
            (NO_CRASH,) * number + (point,)
            for number, command_run in enumerate(self.command_runs)
            for point in command_run
        ]

    @property
    def is_parked(self) -> bool:
        """Whether the run parks."""
        return len(self.command_runs) > 1


@dataclass(frozen=True)
class Trial:
    """A program whose executors die in turn, each at its point."""

    program: str
    at: CrashPoints

    @property
    def name(self) -> str:
        """Unique among trials."""
        crash_points = [
            f"{point} of life {command_run}" if command_run > 1 else point
            for command_run, point in enumerate(self.at, 1)
            if point != NO_CRASH
        ]
        return f"{self.program}, {', then '.join(crash_points)}"

    @property
    def crash_points(self) -> CrashPoints:
        """The points only."""
        return tuple(point for point in self.at if point != NO_CRASH)


@dataclass(frozen=True)
class Result:
    """Result of a trial's last attempt; not `reached` if the run ended, or was taken over, before
    its point."""

    trial: Trial
    run: str
    reached: bool
    faults: Sequence[str]


async def baseline_runs(crash_stack: CrashStack) -> dict[str, Baseline]:
    """Run every program once, undisturbed, after learning the capabilities that they call."""
    for capability, code in CAPABILITIES.items():
        await crash_stack.learn(capability, code)

    async def run(program: str) -> Baseline:
        name = key_of(f"{program}-calm")
        answer = await crash_stack.answer(program, name)
        assert PROGRAMS[program].matches(answer), answer
        diary = await crash_stack.wait_until_done(workflow_of(name))
        command_runs = max(line.command_run for line in diary)
        outcome = await crash_stack.outcome(name, answer)
        return Baseline(
            outcome, [points(diary, command_run) for command_run in range(1, command_runs + 1)]
        )

    runs = await asyncio.gather(*map(run, PROGRAMS))
    return dict(zip(PROGRAMS, runs, strict=True))


async def kill_executors(
    crash_stack: CrashStack, trials: Sequence[Trial], baseline: Mapping[str, Baseline]
) -> list[Result]:
    """Run the trials, TOGETHER at a time."""
    room = asyncio.Semaphore(TOGETHER)

    async def one(trial: Trial) -> Result:
        async with room:
            return await retry_unreached(
                lambda run: _killed(crash_stack, trial, baseline[trial.program], run), trial
            )

    return await asyncio.gather(*map(one, trials))


async def retry_unreached(run_as: Callable[[str], Awaitable[Result]], trial: Trial) -> Result:
    """Run a trial, again if the machine was too slow: a late heartbeat hands the run to another
    executor before the point."""
    result = await run_as(key_of(f"{trial.name}, try 1"))
    for attempt in range(2, TRIES + 1):
        if not result.reached:
            result = await run_as(key_of(f"{trial.name}, try {attempt}"))
    return result


async def _killed(crash_stack: CrashStack, trial: Trial, baseline: Baseline, run: str) -> Result:
    workflow = workflow_of(run)
    crash_stack.crash_log.plan(workflow, CrashPlan(trial.at, signal.SIGKILL))
    try:
        answer = await crash_stack.answer(trial.program, run)
        diary = await crash_stack.wait_until_done(workflow)
    except (TimeoutError, AssertionError) as error:
        return Result(trial, run, True, [f"it does not end: {error}"])
    found = faults(await crash_stack.outcome(run, answer), baseline.outcome)
    return Result(trial, run, _crash_points_of(diary) == trial.crash_points, found)


def _crash_points_of(diary: Sequence[LogEntry]) -> CrashPoints:
    """The last point of each command run without an end; empty if it reached none."""
    command_runs = dict.fromkeys(line.command_run for line in diary)
    ended = {line.command_run for line in diary if line.point is None and line.what != "begins"}
    return tuple(
        (points(diary, command_run) or [""])[-1]
        for command_run in command_runs
        if command_run not in ended
    )


def every_point(baseline: Mapping[str, Baseline]) -> list[Trial]:
    """One trial per point; in some, the executor that takes over also dies, during the replay."""
    once = [Trial(program, at) for program, run in baseline.items() for at in run.crash_points]
    twice = [
        Trial(program, (*run.crash_points[len(run.crash_points) * part // 4], again))
        for program, run in baseline.items()
        for part, again in enumerate(SECOND_CRASH_POINTS, 1)
    ]
    return once + twice


def some_points(baseline: Mapping[str, Baseline]) -> list[Trial]:
    """For each program a point of one kind, another for each; one program dies twice. For one that
    parks, each kind of point around the first park, and the first point after it."""
    once = [
        Trial(program, of_kind[shift % len(of_kind)])
        for shift, (program, run) in enumerate(baseline.items())
        for place, of_kind in enumerate(by_kind(run.crash_points).values(), shift)
        if not run.is_parked and place % KINDS == 0
    ]
    run = baseline["parking"]
    parked = [by_kind(run.crash_points)[kind][0] for kind in PARK_SAMPLE]
    resumed = (NO_CRASH, run.command_runs[1][0])
    middle = baseline["parallel"].crash_points[len(baseline["parallel"].crash_points) // 2]
    return [
        *once,
        Trial("parallel", (*middle, SECOND_CRASH_POINTS[0])),
        *(Trial("parking", at) for at in (*parked, resumed)),
    ]


def by_kind(crash_points: Sequence[CrashPoints]) -> dict[str, list[CrashPoints]]:
    """Group crashes by the kind of their point."""
    found: dict[str, list[CrashPoints]] = {}
    for at in crash_points:
        found.setdefault(kind_of(at[-1]), []).append(at)
    return found
