"""Processes shared by scopes: killed at the deadline, replaced, and none blocked by another."""

import asyncio
import os
import resource
import signal
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from libs.pml_local.tests.support.harness import eventually
from pml_analyzer.adapters.child_process import ChildCommand, ChildLost, ChildProcess
from pml_analyzer.adapters.worker_pool import OutOfTime, WorkerLimits, WorkerPool, worker_pool
from pml_analyzer.ports import WorkersUnavailable
from pml_common.contracts.scope import Scope
from services.analyzer.tests.support.gated_children import CHILD, Gate

pytestmark = pytest.mark.integration

ACME, RIVAL = Scope(org="acme", project="webapp"), Scope(org="rival", project="webapp")
LIMITS = WorkerLimits(deadline_s=60)
SHORT = replace(LIMITS, deadline_s=0.1)


async def answer(pool: WorkerPool, request: bytes = b"now", scope: Scope = ACME) -> int:
    """Return the id of the process that answered."""

    async def talk(child: ChildProcess) -> bytes:
        return await child.request(request)

    return int(await pool.run(scope, talk))


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_one_scopes_long_work_holds_up_no_other_scope(tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    async with worker_pool("test", CHILD, LIMITS) as pool:
        long = asyncio.create_task(answer(pool, gate.request))
        await eventually(lambda: pool.busy)
        own = asyncio.create_task(answer(pool))
        for _ in range(3):
            await answer(pool, scope=RIVAL)
        assert not long.done()
        assert not own.done()
        gate.open()
        assert await long == await own


async def test_without_spares_the_first_request_starts_a_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    starts: list[ChildCommand] = []
    start = ChildProcess.start

    async def recorded(command: ChildCommand) -> ChildProcess:
        starts.append(command)
        return await start(command)

    monkeypatch.setattr(ChildProcess, "start", recorded)
    async with worker_pool("test", CHILD, replace(LIMITS, spares=0)) as pool:
        await asyncio.sleep(0)  # a start in the background would begin now
        assert starts == []
        first = await answer(pool)
        assert await answer(pool) == first
        assert starts == [CHILD]
    async with worker_pool("test", CHILD, replace(LIMITS, spares=0)):
        pass  # ended without one


async def test_work_beyond_the_deadline_costs_its_process_which_is_replaced() -> None:
    async with worker_pool("test", CHILD, replace(SHORT, processes=1)) as pool:
        first = await answer(pool)
        with pytest.raises(OutOfTime, match=r"0\.1 s"):
            await answer(pool, b"spin")
        second = await answer(pool, scope=RIVAL)
        assert second != first
        assert not is_there(first)
        assert pool.busy == ()


async def test_waiting_for_a_processor_is_not_held_against_anybody(tmp_path: Path) -> None:
    gate, looks = Gate(tmp_path), 0

    def looked(self: ChildProcess) -> float:
        nonlocal looks
        looks += 1
        return 0.0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ChildProcess, "processor_s", looked)
        async with worker_pool("test", CHILD, replace(LIMITS, deadline_s=0.05)) as pool:
            slow = asyncio.create_task(answer(pool, gate.request))
            await eventually(lambda: looks > 3)
            gate.open()
            assert await slow > 0


async def test_without_an_end_the_clock_decides() -> None:
    def unused(_: ChildProcess) -> float:
        return 0.0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ChildProcess, "processor_s", unused)
        async with worker_pool("test", CHILD, replace(LIMITS, deadline_s=0.02)) as pool:
            with pytest.raises(OutOfTime):
                await answer(pool, b"spin")


async def test_the_kernel_ends_it_when_nobody_else_does() -> None:
    child = await ChildProcess.start(CHILD)
    child.limit_processor_time(3.0)
    soft, _ = resource.prlimit(child.pid, resource.RLIMIT_CPU)
    assert 5 <= soft <= 7
    await child.close()
    child.limit_processor_time(3.0)  # nothing is there any more
    assert child.processor_s() is None


async def test_a_process_that_died_is_replaced_before_anybody_notices() -> None:
    async with worker_pool("test", CHILD, LIMITS) as pool:
        first = await answer(pool)
        os.kill(first, signal.SIGKILL)
        assert await answer(pool) != first
        assert await pool.health() is None


async def test_what_ends_two_processes_is_not_tried_on_a_third() -> None:
    async with worker_pool("test", CHILD, LIMITS) as pool:
        for request in (b"die", b"lie"):
            with pytest.raises(ChildLost):
                await answer(pool, request)
        assert await answer(pool) > 0


async def test_a_cancelled_request_leaves_no_process_at_work(tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    async with worker_pool("test", CHILD, LIMITS) as pool:
        long = asyncio.create_task(answer(pool, gate.request))
        (pid,) = await eventually(lambda: pool.busy)
        long.cancel()
        with suppress(asyncio.CancelledError):
            await long
        assert await answer(pool) != pid
        await eventually(lambda: not is_there(pid))


@pytest.mark.parametrize(
    "worn",
    [replace(LIMITS, max_requests=1), replace(LIMITS, resident_mib=1)],
    ids=["used", "large"],
)
async def test_a_worn_process_is_replaced(worn: WorkerLimits) -> None:
    async with worker_pool("test", CHILD, worn) as pool:
        seen = {await answer(pool) for _ in range(65)}
    assert len(seen) >= 2


async def test_what_cannot_start_is_bad_health_and_tried_again() -> None:
    for argv in (("/nowhere/python",), ("true",)):
        async with worker_pool("test", ChildCommand(argv), LIMITS) as pool:
            assert await eventually(pool.health)
            for _ in range(2):
                with pytest.raises(WorkersUnavailable, match="test: "):
                    await answer(pool)


async def test_what_is_never_ready_is_not_waited_for() -> None:
    command = ChildCommand(("cat",), start_patience_s=0.1)
    async with worker_pool("test", command, LIMITS) as pool:
        with pytest.raises(WorkersUnavailable, match="not ready"):
            await answer(pool)


async def test_nothing_is_left_of_them(tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    async with worker_pool("test", CHILD, LIMITS) as pool:
        long = asyncio.create_task(answer(pool, gate.request))
        (pid,) = await eventually(lambda: pool.busy)
        other = await answer(pool, scope=RIVAL)
        long.cancel()
    assert not is_there(other)
    await eventually(lambda: not is_there(pid))
    async with worker_pool("test", CHILD, LIMITS):
        pass  # ended while it starts
