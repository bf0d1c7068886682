"""Executors that freeze at a point, lose their run to another, and wake up after its end."""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from functools import partial
from time import monotonic

import psutil

from libs.pml_local.tests.support.harness import eventually
from tests.crashes.crash_plan import SPARED, Line, Plan, kind_of
from tests.crashes.crash_stack import Ground, workflow_of
from tests.crashes.kills import At, Calm, Result, Trial, by_kind, tried
from tests.crashes.verdict import faults

FREEZES_WITHIN_S = 30.0
WAKES_WITHIN_S = 20.0
FROZEN_FOR_S = 2.5
"""At least: in the product nobody takes a run over before, and gateways rely on that."""
ROUNDS = 20
NOBODY = -1


async def frozen(ground: Ground, trials: Sequence[Trial], calm: Mapping[str, Calm]) -> list[Result]:
    """The trials, one at a time: of two executors one is frozen while the other one finishes."""

    async def one(trial: Trial) -> Result:
        run_as = partial(_frozen, ground, trial, calm[trial.program])
        return await tried(lambda run: run_as(f"zombie-{run}"), trial)

    return [await one(trial) for trial in trials]


async def _frozen(ground: Ground, trial: Trial, calm: Calm, run: str) -> Result:
    workflow = workflow_of(run)
    ground.diaries.plan(workflow, Plan(trial.at, signal.SIGSTOP))
    diary = partial(ground.diaries.read, workflow)
    running = asyncio.create_task(ground.answer(trial.program, run))
    try:
        pid = await eventually(lambda: _stopped(diary(), trial.at), FREEZES_WITHIN_S)
        since = monotonic()
        answer, _ = await running, await ground.settled(workflow)
        if pid == NOBODY:
            return Result(trial, run, False, [])
        await asyncio.sleep(max(0.0, since + FROZEN_FOR_S - monotonic()))
        before = await ground.told(run, answer), await ground.appends(workflow)
        os.kill(pid, signal.SIGCONT)
        how = await eventually(lambda: _end(diary(), len(trial.at)), WAKES_WITHIN_S)
    except (TimeoutError, AssertionError) as error:
        return Result(trial, run, True, [f"it does not end: {error}"])
    finally:
        running.cancel()
    found = faults(before[0], calm.told)
    if (await ground.told(run, answer), await ground.appends(workflow)) != before:
        found.append("the one that woke up has called, appended or stated something")
    if (expected := _expected_end(trial.at, calm)) != how:
        found.append(f"the one that woke up ended with {how}, not {expected}")
    return Result(trial, run, True, found)


def _stopped(diary: Sequence[Line], at: At) -> int | None:
    """The process that stands still at this point of its life; NOBODY once it never will."""
    if any(line.what == "done" for line in diary):
        return NOBODY
    place = len(at), at[-1]
    pid = next((line.pid for line in diary if (line.life, line.point) == place), None)
    return pid if pid and psutil.Process(pid).status() == psutil.STATUS_STOPPED else None


def _end(diary: Sequence[Line], life: int) -> str | None:
    """How a life ended."""
    ends = [line.what for line in diary if line.life == life and line.point is None]
    return ends[1] if len(ends) > 1 else None


def _expected_end(at: At, calm: Calm) -> str:
    """Refused at its next append; it has none if it never began to write, and then it finds the
    journal closed, or if it had parked or closed it, and then it states the same fact, which the
    server keeps once."""
    life = calm.lives[len(at) - 1]
    place = life.index(at[-1])
    if place == 0:
        return "done"
    if any(kind_of(later) in ("before append", "before mark") for later in life[place:]):
        return "Fenced"
    return "done" if len(at) == len(calm.lives) else "parked"


async def of_use_again(
    ground: Ground, results: Sequence[Result], calm: Mapping[str, Calm]
) -> list[str]:
    """Programs run undisturbed until each executor that was frozen has finished one; what is wrong
    with them."""
    woken = {
        line.pid
        for result in results
        for line in ground.diaries.read(workflow_of(result.run))
        if line.life == len(result.trial.at)
    }
    found, program = list[str](), "sequential"
    for number in range(ROUNDS):
        if not woken:
            break
        run = f"afterwards-{number}"
        answer = await ground.answer(program, run)
        diary = await ground.settled(workflow_of(run))
        found += faults(await ground.told(run, answer), calm[program].told)
        woken -= {line.pid for line in diary if line.what == "done"}
    return found + [f"executor {pid} takes no run after its freeze" for pid in woken]


def at_every_kind(calm: Mapping[str, Calm], programs: Sequence[str]) -> list[Trial]:
    """Of each of these programs the middle point of each kind."""
    return [
        Trial(program, of_kind[len(of_kind) // 2])
        for program in programs
        for of_kind in by_kind(calm[program].deaths).values()
    ]


def across_a_park(calm: Mapping[str, Calm]) -> list[Trial]:
    """Frozen as it states that its run is parked, and in the midst of the life after that."""
    _, resumed, *_ = calm["parking"].lives
    return [
        Trial("parking", ("parking 1: before",)),
        Trial("parking", (SPARED, resumed[len(resumed) // 2])),
    ]
