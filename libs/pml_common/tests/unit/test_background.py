"""Work that is repeated."""

import asyncio

import pytest

from pml_common.background import run_periodically, run_until_done
from pml_common.errors import Retryable


async def test_work_begins_after_its_time_and_is_repeated_whatever_fails() -> None:
    waited: list[float] = []
    failures = iter((Retryable("away"), ValueError("a bug")))

    async def sleep(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 4:
            raise asyncio.CancelledError

    async def work() -> None:
        if (error := next(failures, None)) is not None:
            raise error

    with pytest.raises(asyncio.CancelledError):
        await run_periodically(work, 7.0, first_after_s=60.0, sleep=sleep)
    assert waited == [60.0, 7.0, 7.0, 7.0]


@pytest.mark.parametrize("last", [None, ValueError("a bug")])
async def test_work_is_done_once_after_outages_and_not_again_after_a_bug(
    last: Exception | None,
) -> None:
    waited: list[float] = []
    ends: list[Exception | None] = [Retryable("away"), Retryable("away"), last, None]

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    async def work() -> None:
        if (error := ends.pop(0)) is not None:
            raise error

    await run_until_done(work, 7.0, sleep=sleep)
    assert (waited, ends) == ([7.0, 7.0], [None])
