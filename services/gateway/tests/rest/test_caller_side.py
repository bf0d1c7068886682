"""The caller's end of an execution: the time to an answer, progress, and withdrawal."""

import asyncio
from uuid import UUID

import pytest

from libs.pml_local.tests.support.harness import eventually
from pml_common.contracts import ids
from pml_common.contracts.executor import TraceRecorded
from pml_common.contracts.trace import ToolStart
from pml_gateway.domain.api.api import ExecuteRequest, ExecuteResponse
from pml_gateway.ports import CallerSide
from services.gateway.tests.support.builders import SCOPE
from services.gateway.tests.support.harness import World, Worlds

pytestmark = pytest.mark.integration

Told = list[tuple[int, int, str]]


def _execute(w: World, side: CallerSide, **request: object) -> asyncio.Task[ExecuteResponse]:
    given = ExecuteRequest.model_validate({"code": "hang", **request})
    return asyncio.create_task(w.parts.use_cases.agents.execute(SCOPE, "mira", given, side))


def _until(seconds: float) -> CallerSide:
    """A caller who waits for so long."""
    return CallerSide(answer_by=asyncio.get_running_loop().time() + seconds)


async def _running(w: World) -> UUID:
    await eventually(lambda: w.peers.runs)
    return w.peers.runs[-1].workflow_id


async def _withdraw(task: asyncio.Task[ExecuteResponse]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_call_is_answered_running_when_its_caller_waits_no_longer(world: Worlds) -> None:
    async with world() as w:
        answer = await _execute(w, _until(0.3))
        assert answer.status == "running"
        assert answer.next is not None
        assert answer.next.call.arguments["workflow_id"] == str(answer.workflow_id)


async def test_the_calls_that_a_run_reaches_are_reported(world: Worlds) -> None:
    told: Told = []

    async def report(done: int, total: int, message: str) -> None:
        told.append((done, total, message))

    async with world() as w:
        task = _execute(w, CallerSide(report=report))
        workflow_id = await _running(w)
        assert told == [(0, 1, "0 of 1 calls reached: analysed")]
        trace = ids.root_trace_id(workflow_id)
        start = ToolStart(trace_id=trace, ts=1, node_id="n1", tool="fs:read", args={}, args_hash="")
        last = 0
        for number in range(2):
            append = TraceRecorded(
                scope=SCOPE,
                event_id=ids.effect_id(workflow_id, f"append {number}"),
                workflow_id=workflow_id,
                entries=(start,),
                previous=last,
            )
            last = await w.peers.bus.publish(append)
        await eventually(lambda: len(told) > 1)
        assert told[1:] == [(1, 1, "1 of 1 calls reached: fs:read (n1)")]
        await _withdraw(task)


async def test_a_withdrawn_call_stops_its_workflow(world: Worlds) -> None:
    async with world() as w:
        task = _execute(w, CallerSide(withdrawn=lambda: True))
        workflow_id = await _running(w)
        await _withdraw(task)
        await eventually(lambda: w.cancelled())
        (told,) = w.cancelled()
        assert (told.workflow_id, told.why) == (
            workflow_id,
            "mira cancelled it: the call was cancelled",
        )


async def test_a_call_that_is_lost_stops_nothing(world: Worlds) -> None:
    async with world() as w:
        task = _execute(w, CallerSide(withdrawn=lambda: False))
        workflow_id = await _running(w)
        await _withdraw(task)
        w.peers.release.set()

        async def succeeded() -> bool:
            return (await w.workflow(workflow_id))["status"] == "success"

        await eventually(succeeded)
        assert w.cancelled() == []


@pytest.mark.parametrize("last", [False, True])
async def test_a_workflow_goes_on_while_another_caller_waits_for_it(
    world: Worlds, *, last: bool
) -> None:
    waits = asyncio.Event()

    async def report(done: int, total: int, message: str) -> None:
        waits.set()

    async with world() as w:
        first = _execute(w, CallerSide(withdrawn=lambda: True), idempotency_key="k")
        await _running(w)
        side = CallerSide(withdrawn=lambda: True, report=report)
        second = _execute(w, side, idempotency_key="k")
        await waits.wait()
        await _withdraw(first)
        await w.parts.withdrawals.close()
        assert w.cancelled() == []
        if last:
            await _withdraw(second)
            await eventually(lambda: w.cancelled())
        else:
            w.peers.release.set()
            assert (await second).status == "success"
