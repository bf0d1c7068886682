"""Crashes around parked and accepted runs: the executor dies, the command that parked the run is
redelivered, the gateway dies between storing and publishing."""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from uuid import UUID

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from tests.crashes.crash_plan import NO_CRASH, CrashPlan, LogEntry
from tests.crashes.crash_stack import CrashStack, workflow_of
from tests.crashes.kills import Baseline, Result, Trial, retry_unreached
from tests.crashes.verdict import faults

PROGRAM = "parking"
LINGER_MS = 5000
"""Longer than the server's redelivery takes."""
WITHIN_S = PATIENCE_S
DIES_WITHIN_S = PATIENCE_S
KILLS_IN_A_ROW = 4
PARKED_QUESTION = 2
"""The approval after the one for the program itself."""
PARKED_POINT = "parking 1: after"
RUNS_AT_ONCE = "sequential"
READS = "reading"
"""Runs at once, too. The gateway stores what it accepted a moment later, while it makes the calls:
of one that may not be repeated the outcome would be unknown."""
GATEWAY_POINTS = (
    (PROGRAM, "run-workflow 2: before"),
    (RUNS_AT_ONCE, "workflow-accepted 1: after"),
    (PROGRAM, "run-workflow 2: after"),
    (PROGRAM, "approval-requested 2: before"),
    (PROGRAM, "approval-requested 2: after"),
    (PROGRAM, "approval-decided 2: before"),
    (PROGRAM, "storing run-finished: before"),
    (PROGRAM, "storing run-finished: after"),
    (RUNS_AT_ONCE, "workflow-accepted 1: before"),
    (READS, "storing workflow-accepted: before"),
    (READS, "storing workflow-accepted: after"),
    (RUNS_AT_ONCE, "storing run-finished: before"),
    (RUNS_AT_ONCE, "storing run-finished: after"),
)
"""Programs, each with a point at which the gateway dies; the first two are the sample."""
BATCH_POINTS = ("storing workflow-accepted: after", "storing run-finished: after")
"""Points at which the gateway dies while it stores several workflows together."""
AT_ONCE = 6


async def crash_while_parked(
    crash_stack: CrashStack,
    points: Sequence[tuple[str, str]],
    baseline: Mapping[str, Baseline],
) -> list[Result]:
    """Run all trials in turn, with the gateway dying at these points."""
    run = baseline[PROGRAM]
    results = [await redelivered(crash_stack, run), await killed_waiting(crash_stack, run)]
    if len(points) == len(GATEWAY_POINTS):
        results += [await killed_in_batch(crash_stack, each, baseline) for each in BATCH_POINTS]
    for number, (program, point) in enumerate(points, start=1):
        results.append(await gateway_killed(crash_stack, program, point, baseline[program]))
        if number % KILLS_IN_A_ROW == 0:  # each restart after a kill waits twice as long
            await crash_stack.stack.restart("gateway")
    return results


async def redelivered(crash_stack: CrashStack, baseline: Baseline) -> Result:
    """The executor that parked the run dies before its acknowledgement; while the run continues
    under its next command, the first one is redelivered, and disturbs nothing."""
    trial = Trial("parking lingering", (PARKED_POINT,))
    return await retry_unreached(partial(_redelivered, crash_stack, baseline, trial), trial)


async def _redelivered(
    crash_stack: CrashStack, baseline: Baseline, trial: Trial, run: str
) -> Result:
    workflow = workflow_of(run)
    crash_stack.crash_log.plan(workflow, CrashPlan((PARKED_POINT,), signal.SIGKILL))
    try:
        answer = await crash_stack.answer(PROGRAM, run, linger_ms=LINGER_MS)
        diary = await crash_stack.wait_until_done(workflow)
    except (TimeoutError, AssertionError) as error:
        return Result(trial, run, True, [f"it does not end: {error}"])
    found = faults(await crash_stack.outcome(run, answer), baseline.outcome)
    ends = Counter(line.what for line in diary if line.point is None and line.what != "begins")
    if disturbed := ends.keys() - {"parked", "done"}:
        found.append(f"the redelivered command disturbed the run: {disturbed}")
    # One command run that would have parked was killed: an unchanged count means that one repeated
    # it.
    return Result(trial, run, ends["parked"] >= len(baseline.command_runs) - 1, found)


async def killed_waiting(crash_stack: CrashStack, baseline: Baseline) -> Result:
    """The executor that parked a run dies while the run waits; the decision follows at once."""
    trial, run = Trial("parking waiting", (NO_CRASH,)), "killed-waiting"
    workflow = workflow_of(run)

    async def kill(question: int) -> None:
        if question == PARKED_QUESTION:
            parked = await eventually(
                lambda: _parked(crash_stack.crash_log.read(workflow)), WITHIN_S
            )
            os.kill(parked.pid, signal.SIGKILL)

    try:
        answer = await crash_stack.answer(PROGRAM, run, meanwhile=kill)
        await crash_stack.wait_until_done(workflow)
    except (TimeoutError, AssertionError) as error:
        return Result(trial, run, True, [f"it does not end: {error}"])
    return Result(
        trial, run, True, faults(await crash_stack.outcome(run, answer), baseline.outcome)
    )


def _parked(diary: Sequence[LogEntry]) -> LogEntry | None:
    return next((line for line in diary if line.what == "parked"), None)


async def _died(crash_stack: CrashStack, workflow: UUID) -> bool:
    """Whether the gateway has died, perhaps after it answered: it stores ends later."""
    try:
        return await eventually(
            lambda: not crash_stack.crash_log.gateway_crash_pending(workflow), within=DIES_WITHIN_S
        )
    except AssertionError:
        return False


async def gateway_killed(
    crash_stack: CrashStack, program: str, point: str, baseline: Baseline
) -> Result:
    """The gateway dies at this point of a run."""
    trial = Trial(f"{program} gateway", (point,))
    run = f"gateway-{program}-{point.translate({ord(' '): '-', ord(':'): None})}"
    workflow = workflow_of(run)
    crash_stack.crash_log.plan_gateway(workflow, point)
    try:
        # A gateway that dies at its request may lose a decision that it has not received yet.
        answer = await crash_stack.answer(
            program, run, repeats=point.startswith("approval-requested")
        )
        await crash_stack.wait_until_done(workflow)
    except (TimeoutError, AssertionError) as error:
        return Result(trial, run, True, [f"it does not end: {error}"])
    died = await _died(crash_stack, workflow)
    outcome = await crash_stack.outcome(run, answer)
    found = faults(outcome, baseline.outcome, may_read_again=program == READS)
    return Result(trial, run, died, found)


async def killed_in_batch(
    crash_stack: CrashStack, point: str, baseline: Mapping[str, Baseline]
) -> Result:
    """The gateway dies while it stores workflows that were requested together."""
    trial = Trial(f"{READS} gateway, {AT_ONCE} together", (point,))
    name = f"gateway-batch-{point.translate({ord(' '): '-', ord(':'): None})}"
    runs = [f"{name}-{number}" for number in range(AT_ONCE)]
    crash_stack.crash_log.plan_gateway(workflow_of(runs[0]), point)
    try:
        answers = await asyncio.gather(*(crash_stack.answer(READS, run) for run in runs))
        for run in runs:
            await crash_stack.wait_until_done(workflow_of(run))
    except (TimeoutError, AssertionError) as error:
        return Result(trial, name, True, [f"it does not end: {error}"])
    died = await _died(crash_stack, workflow_of(runs[0]))
    found = list[str]()
    for run, answer in zip(runs, answers, strict=True):
        outcome = await crash_stack.outcome(run, answer)
        found += faults(outcome, baseline[READS].outcome, may_read_again=True)
    return Result(trial, name, died, found)
