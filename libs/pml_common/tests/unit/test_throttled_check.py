"""Throttled checks: rare runs, frequent calls."""

import asyncio

import pytest

from pml_common.throttled_check import ThrottledCheck


class Disk:
    """A check that counts its runs; it returns `wrong` once `gate` is open."""

    def __init__(self) -> None:
        self.wrong: str | None = None
        self.tried = 0
        self.gate = asyncio.Event()
        self.gate.set()

    async def check(self) -> str | None:
        self.tried += 1
        await self.gate.wait()
        return self.wrong


async def test_concurrent_calls_share_one_check_per_interval() -> None:
    disk = Disk()
    check = ThrottledCheck(disk.check, every_s=600)
    assert await asyncio.gather(*(check() for _ in range(5))) == [None] * 5
    disk.wrong = "full"
    assert await check() is None
    assert disk.tried == 1


async def test_the_last_result_is_available_without_a_check() -> None:
    disk = Disk()
    disk.wrong = "full"
    check = ThrottledCheck(disk.check, every_s=600)
    assert check.found is None
    assert await check() == "full"
    assert check.found == "full"


async def test_the_check_runs_again_after_its_interval() -> None:
    disk = Disk()
    disk.wrong = "full"
    check = ThrottledCheck(disk.check, every_s=0)
    assert await check() == "full"
    disk.wrong = None
    assert await check() is None
    assert disk.tried == 2


async def test_a_slow_check_delays_no_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pml_common.throttled_check._WAIT_S", 0.01)
    disk = Disk()
    disk.wrong = "full"
    disk.gate.clear()
    check = ThrottledCheck(disk.check, every_s=600)
    assert await check() is None
    assert await check() is None
    disk.gate.set()
    monkeypatch.undo()
    assert await check() == "full"
    assert disk.tried == 1


async def test_a_check_that_does_not_end_has_failed() -> None:
    disk = Disk()
    disk.gate.clear()
    check = ThrottledCheck(disk.check, every_s=600, within_s=0.01)
    assert await check() == "no answer within 0.01 s"


async def test_an_exception_of_a_check_is_raised() -> None:
    async def wrong() -> str | None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await ThrottledCheck(wrong)()
