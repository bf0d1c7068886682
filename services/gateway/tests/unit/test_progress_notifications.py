"""Progress notifications of one call."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from libs.pml_local.tests.support.harness import eventually
from pml_gateway.entrypoints.mcp.progress import Progress
from pml_gateway.ports import ToolProgress

Told = list[tuple[float, float | None, str | None]]


@asynccontextmanager
async def running(every_s: float = 60.0) -> AsyncGenerator[tuple[Progress, Told]]:
    told: Told = []

    async def send(value: float, total: float | None, message: str | None) -> None:
        told.append((value, total, message))

    progress = Progress(send)
    task = asyncio.create_task(progress.run(every_s))
    yield progress, told
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def at(progress: float, total: float | None = 100, message: str | None = None) -> ToolProgress:
    return ToolProgress("fs:read", progress, total, message)


async def test_the_numbers_of_the_only_call_are_its_own_and_always_grow() -> None:
    async with running() as (progress, told):
        await progress.report(0, 1, "0 of 1 calls ended: fs:read")
        for number, step in enumerate((at(0, message="begun"), at(50), at(50), at(100)), 2):
            progress.relay(step)
            await eventually(lambda number=number: len(told) == number)
    values = [value for value, _, _ in told]
    assert values == sorted(set(values))
    assert (values[0], values[2], values[4]) == (0, 50, 100)
    assert 50 < values[3] < 51
    assert [total for _, total, _ in told] == [1, 100, 100, 100, 100]
    assert told[1][2] == told[2][2] == "begun"


async def test_in_a_program_of_several_calls_a_tool_only_tells() -> None:
    async with running() as (progress, told):
        await progress.report(2, 3, "2 of 3 calls reached: fs:read (n2)")
        progress.relay(at(50, None, "half"))
        await eventually(lambda: len(told) == 2)
        progress.relay(at(100))
        await eventually(lambda: len(told) == 3)
        await progress.report(3, 3, "3 of 3 calls reached: fs:read (n3)")
    assert [message for _, _, message in told[1:3]] == ["fs:read 50: half", "fs:read 100 of 100"]
    assert all(total == 3 for _, total, _ in told)
    assert 1.5 == told[0][0] < told[1][0] < told[2][0] < 2 < told[3][0] < 3


async def test_much_progress_is_sent_now_and_then_and_its_last_at_the_end() -> None:
    async with running() as (progress, told):
        for number in range(4):
            progress.relay(at(number))
            await eventually(lambda number=number: len(told) == number + 1)
        for number in range(4, 1000):
            progress.relay(at(number))
        await progress.flush()
        await progress.flush()
    assert [value for value, _, _ in told] == [0, 1, 2, 3, 999]


async def test_while_nothing_is_said_it_says_so() -> None:
    async with running(every_s=0.001) as (_, told):
        await eventually(lambda: len(told) >= 3)
    assert [message for _, _, message in told[:3]] == ["accepted"] * 3
    assert told[0][0] < told[1][0] < told[2][0] < 0.5
