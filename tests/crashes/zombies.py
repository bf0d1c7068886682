"""Executors that freeze at a point, lose their run to another, and resume after its end."""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from functools import partial
from time import monotonic

import psutil

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from tests.crashes.caller import Answer
from tests.crashes.crash_plan import NO_CRASH, CrashPlan, LogEntry, kind_of
from tests.crashes.crash_stack import RUN_WITHIN_S, CrashStack, workflow_of
from tests.crashes.kills import Baseline, CrashPoints, Result, Trial, by_kind, retry_unreached
from tests.crashes.verdict import faults

FREEZES_WITHIN_S = PATIENCE_S
WAKES_WITHIN_S = PATIENCE_S
FROZEN_FOR_S = 2.5
"""Minimum: in production nothing takes over a run earlier, and gateways rely on that."""
ROUNDS = 20
NO_PROCESS = -1
APPENDS = ("before append", "before mark", "before parking", "before finish")
"""Kinds of points at which an executor whose run was taken over is refused."""


async def freeze_executors(
    crash_stack: CrashStack, trials: Sequence[Trial], baseline: Mapping[str, Baseline]
) -> list[Result]:
    """Run the trials in turn: of two executors one is frozen while the other finishes the run."""

    async def one(trial: Trial) -> Result:
        run_as = partial(_frozen, crash_stack, trial, baseline[trial.program])
        return await retry_unreached(lambda run: run_as(f"zombie-{run}"), trial)

    return [await one(trial) for trial in trials]


async def _frozen(crash_stack: CrashStack, trial: Trial, baseline: Baseline, run: str) -> Result:
    workflow = workflow_of(run)
    crash_stack.crash_log.plan(workflow, CrashPlan(trial.at, signal.SIGSTOP))
    diary = partial(crash_stack.crash_log.read, workflow)
    running = asyncio.create_task(crash_stack.answer(trial.program, run))
    try:
        pid = await eventually(lambda: _frozen_process(diary(), trial.at), FREEZES_WITHIN_S)
        since = monotonic()
        await eventually(lambda: _goes_on(crash_stack, running, pid), RUN_WITHIN_S)
        answer, _ = await running, await crash_stack.wait_until_done(workflow)
        if pid == NO_PROCESS:
            return Result(trial, run, False, [])
        await asyncio.sleep(
            max(0.0, since + FROZEN_FOR_S - monotonic())
        )  # waits: length of the freeze
        before = await crash_stack.outcome(run, answer), await crash_stack.appends(workflow)
        os.kill(pid, signal.SIGCONT)
        how = await eventually(lambda: _end(diary(), len(trial.at)), WAKES_WITHIN_S)
    except (TimeoutError, AssertionError) as error:
        return Result(trial, run, True, [f"it does not end: {error}"])
    finally:
        running.cancel()
    found = faults(before[0], baseline.outcome)
    if (await crash_stack.outcome(run, answer), await crash_stack.appends(workflow)) != before:
        found.append("the resumed executor called, appended or published something")
    if (expected := _expected_end(trial.at, baseline)) != how:
        found.append(f"the resumed executor ended with {how}, not {expected}")
    return Result(trial, run, True, found)


def _goes_on(crash_stack: CrashStack, running: asyncio.Task[Answer], but: int) -> bool:
    """Whether the run has ended; all executors but the frozen one go on meanwhile."""
    crash_stack.resume_executors(but)
    return running.done()


def _frozen_process(diary: Sequence[LogEntry], at: CrashPoints) -> int | None:
    """The process frozen at this point; NO_PROCESS once it cannot freeze any more."""
    if any(line.what == "done" for line in diary):
        return NO_PROCESS
    place = len(at), at[-1]
    pid = next((line.pid for line in diary if (line.command_run, line.point) == place), None)
    return pid if pid and psutil.Process(pid).status() == psutil.STATUS_STOPPED else None


def _end(diary: Sequence[LogEntry], command_run: int) -> str | None:
    """The end of a command run."""
    ends = [line.what for line in diary if line.command_run == command_run and line.point is None]
    return ends[1] if len(ends) > 1 else None


def _expected_end(at: CrashPoints, baseline: Baseline) -> str:
    """The expected end of a resumed command run: refused at its next append. Without a next append
    it had parked or closed the run."""
    command_run = baseline.command_runs[len(at) - 1]
    if any(kind_of(later) in APPENDS for later in command_run[command_run.index(at[-1]) :]):
        return "Fenced"
    return "done" if len(at) == len(baseline.command_runs) else "parked"


async def resume_work(
    crash_stack: CrashStack, results: Sequence[Result], baseline: Mapping[str, Baseline]
) -> list[str]:
    """Run programs undisturbed until each executor that was frozen has finished one; returns
    failures."""
    woken = {
        line.pid
        for result in results
        for line in crash_stack.crash_log.read(workflow_of(result.run))
        if line.command_run == len(result.trial.at)
    }
    found, program = list[str](), "sequential"
    for number in range(ROUNDS):
        if not woken:
            break
        run = f"afterwards-{number}"
        answer = await crash_stack.answer(program, run)
        diary = await crash_stack.wait_until_done(workflow_of(run))
        found += faults(await crash_stack.outcome(run, answer), baseline[program].outcome)
        woken -= {line.pid for line in diary if line.what == "done"}
    return found + [f"executor {pid} takes no run after its freeze" for pid in woken]


def at_every_kind(baseline: Mapping[str, Baseline], programs: Sequence[str]) -> list[Trial]:
    """Trials at the middle point of each kind, for each of these programs."""
    return [
        Trial(program, of_kind[len(of_kind) // 2])
        for program in programs
        for of_kind in by_kind(baseline[program].crash_points).values()
    ]


def across_a_park(baseline: Mapping[str, Baseline]) -> list[Trial]:
    """Freeze it while it publishes that its run is parked, and in the middle of the next command
    run."""
    _, resumed, *_ = baseline["parking"].command_runs
    return [
        Trial("parking", ("parking 1: before",)),
        Trial("parking", (NO_CRASH, resumed[len(resumed) // 2])),
    ]
