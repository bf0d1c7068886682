"""Executors that freeze at a point, lose their run to another, and wake up after its end."""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from functools import partial

import psutil

from pml_local.testing import eventually
from tests.crashes.ground import Ground, workflow_of
from tests.crashes.kills import Calm, Result, Trial, by_kind, tried
from tests.crashes.lives import Line, Plan, kind_of
from tests.crashes.verdict import faults

FREEZES_WITHIN_S = 30.0
WAKES_WITHIN_S = 20.0
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
        pid = await eventually(lambda: _stopped(diary(), trial.at[0]), FREEZES_WITHIN_S)
        answer, _ = await running, await ground.settled(workflow)
        if pid == NOBODY:
            return Result(trial, run, False, [])
        before = await ground.told(run, answer), await ground.appends(workflow)
        os.kill(pid, signal.SIGCONT)
        how = await eventually(lambda: _end(diary()), WAKES_WITHIN_S)
    except (TimeoutError, AssertionError) as error:
        return Result(trial, run, True, [f"it does not end: {error}"])
    finally:
        running.cancel()
    found = faults(before[0], calm.told)
    if (await ground.told(run, answer), await ground.appends(workflow)) != before:
        found.append("the one that woke up has called, appended or stated something")
    if (expected := _expected_end(trial.at[0], calm.points)) != how:
        found.append(f"the one that woke up ended with {how}, not {expected}")
    return Result(trial, run, True, found)


def _stopped(diary: Sequence[Line], point: str) -> int | None:
    """The process that stands still at this point of its first life; NOBODY once it never will."""
    if any(line.what == "done" for line in diary):
        return NOBODY
    pid = next((line.pid for line in diary if (line.life, line.point) == (1, point)), None)
    return pid if pid and psutil.Process(pid).status() == psutil.STATUS_STOPPED else None


def _end(diary: Sequence[Line]) -> str | None:
    """How the first life ended."""
    ends = [line.what for line in diary if line.life == 1 and line.point is None]
    return ends[1] if len(ends) > 1 else None


def _expected_end(point: str, calm: Sequence[str]) -> str:
    """Refused at its next append; it has none if it never began the journal or had closed it, and
    then it states the same fact, which the server keeps once."""
    at = calm.index(point)
    appends_left = any(kind_of(later) == "before append" for later in calm[at:])
    return "Fenced" if appends_left and at > 0 else "done"


async def of_use_again(
    ground: Ground, results: Sequence[Result], calm: Mapping[str, Calm]
) -> list[str]:
    """Programs run undisturbed until each executor that was frozen has finished one; what is wrong
    with them."""
    diaries = (ground.diaries.read(workflow_of(result.run)) for result in results)
    woken = {diary[0].pid for diary in diaries}
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
        Trial(program, (of_kind[len(of_kind) // 2],))
        for program in programs
        for of_kind in by_kind(calm[program].points).values()
    ]
