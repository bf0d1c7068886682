"""What can happen while a run waits for a person, or as it goes on: its executor dies, the command
that it parked under comes again, the gateway dies between what it stored and what it tells."""

import os
import signal
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

from libs.pml_local.tests.support.harness import eventually
from tests.crashes.crash_plan import SPARED, Line, Plan
from tests.crashes.crash_stack import Ground, workflow_of
from tests.crashes.kills import Calm, Result, Trial, tried
from tests.crashes.verdict import faults

PROGRAM = "parking"
LINGER_MS = 5000
"""Longer than it takes the server to deliver a command again."""
WITHIN_S = 30.0
IN_ITS_MIDST = 2
"""The question after the one whether the program may run at all."""
STATED = "parking 1: after"
GATEWAY_POINTS = (
    "run-workflow 2: before",
    "run-workflow 2: after",
    "approval-requested 2: before",
    "approval-requested 2: after",
    "approval-decided 2: before",
    "workflow-finished 1: before",
)


async def while_it_waits(
    ground: Ground, points: Sequence[str], calm: Mapping[str, Calm]
) -> list[Result]:
    """All of it, one after the other, the gateway at these points."""
    run = calm[PROGRAM]
    return [
        await redelivered(ground, run),
        await killed_waiting(ground, run),
        *[await gateway_killed(ground, point, run) for point in points],
    ]


async def redelivered(ground: Ground, calm: Calm) -> Result:
    """The executor that parked the run dies before it acknowledges; while the run goes on under
    its next command, the first one comes again: it states again that it parked, and disturbs
    nobody."""
    trial = Trial("parking lingering", (STATED,))
    return await tried(partial(_redelivered, ground, calm, trial), trial)


async def _redelivered(ground: Ground, calm: Calm, trial: Trial, run: str) -> Result:
    workflow = workflow_of(run)
    ground.diaries.plan(workflow, Plan((STATED,), signal.SIGKILL))
    try:
        answer = await ground.answer(PROGRAM, run, linger_ms=LINGER_MS)
        diary = await ground.settled(workflow)
    except (TimeoutError, AssertionError) as error:
        return Result(trial, run, True, [f"it does not end: {error}"])
    found = faults(await ground.told(run, answer), calm.told)
    ends = Counter(line.what for line in diary if line.point is None and line.what != "begins")
    if disturbed := ends.keys() - {"parked", "done"}:
        found.append(f"the command that came again disturbed the run: {disturbed}")
    # One life that would have parked was killed: as many as ever means that one stated it again.
    return Result(trial, run, ends["parked"] >= len(calm.lives) - 1, found)


async def killed_waiting(ground: Ground, calm: Calm) -> Result:
    """The executor that parked a run dies while the run waits; the decision comes right then."""
    trial, run = Trial("parking waiting", (SPARED,)), "killed-waiting"
    workflow = workflow_of(run)

    async def kill(question: int) -> None:
        if question == IN_ITS_MIDST:
            parked = await eventually(lambda: _parked(ground.diaries.read(workflow)), WITHIN_S)
            os.kill(parked.pid, signal.SIGKILL)

    try:
        answer = await ground.answer(PROGRAM, run, meanwhile=kill)
        await ground.settled(workflow)
    except (TimeoutError, AssertionError) as error:
        return Result(trial, run, True, [f"it does not end: {error}"])
    return Result(trial, run, True, faults(await ground.told(run, answer), calm.told))


def _parked(diary: Sequence[Line]) -> Line | None:
    return next((line for line in diary if line.what == "parked"), None)


async def gateway_killed(ground: Ground, point: str, calm: Calm) -> Result:
    """The gateway dies at this point of a run."""
    trial = Trial("parking gateway", (point,))
    run = f"gateway-{point.translate({ord(' '): '-', ord(':'): None})}"
    workflow = workflow_of(run)
    ground.diaries.plan_gateway(workflow, point)
    try:
        # Dying at its question, it may take a decision with it that it has not heard yet.
        answer = await ground.answer(PROGRAM, run, repeats=point.startswith("approval-requested"))
        await ground.settled(workflow)
    except (TimeoutError, AssertionError) as error:
        return Result(trial, run, True, [f"it does not end: {error}"])
    died = not ground.diaries.gateway_is_doomed(workflow)
    return Result(trial, run, died, faults(await ground.told(run, answer), calm.told))
