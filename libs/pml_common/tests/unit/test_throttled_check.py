"""Checks that cost something: made rarely, told often."""

import asyncio

import pytest

from pml_common.throttled_check import ThrottledCheck


class Disk:
    """Counts how often it is tried; tells `wrong`, once `gate` is open."""

    def __init__(self) -> None:
        self.wrong: str | None = None
        self.tried = 0
        self.gate = asyncio.Event()
        self.gate.set()

    async def check(self) -> str | None:
        self.tried += 1
        await self.gate.wait()
        return self.wrong


async def test_it_is_made_once_for_all_who_ask_within_its_time() -> None:
    disk = Disk()
    check = ThrottledCheck(disk.check, every_s=600)
    assert await asyncio.gather(*(check() for _ in range(5))) == [None] * 5
    disk.wrong = "full"
    assert await check() is None
    assert disk.tried == 1


async def test_what_it_found_is_known_without_asking() -> None:
    disk = Disk()
    disk.wrong = "full"
    check = ThrottledCheck(disk.check, every_s=600)
    assert check.found is None
    assert await check() == "full"
    assert check.found == "full"


async def test_once_its_time_is_over_it_is_made_anew() -> None:
    disk = Disk()
    disk.wrong = "full"
    check = ThrottledCheck(disk.check, every_s=0)
    assert await check() == "full"
    disk.wrong = None
    assert await check() is None
    assert disk.tried == 2


async def test_one_that_takes_its_time_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
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


async def test_one_that_does_not_end_has_failed() -> None:
    disk = Disk()
    disk.gate.clear()
    check = ThrottledCheck(disk.check, every_s=600, within_s=0.01)
    assert await check() == "no answer within 0.01 s"


async def test_one_that_raises_is_not_hidden() -> None:
    async def wrong() -> str | None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await ThrottledCheck(wrong)()
