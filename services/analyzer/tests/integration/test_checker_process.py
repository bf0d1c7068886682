"""The checker's process: lost, slow, worn, or missing."""

import asyncio
import os
import signal
from contextlib import suppress
from dataclasses import replace

import psutil
import pytest

from libs.pml_local.tests.support.harness import eventually
from pml_checker.checker_process import CheckerCommand, CheckerProcess
from pml_checker.deno_checker import CheckerLimits, DenoChecker, deno_checker
from pml_local.process import descendants_of
from services.analyzer.tests.support.type_checks import (
    COMMAND,
    ENDLESS,
    PATIENT,
    TOOLS,
    complaints,
    why_unchecked,
)

pytestmark = pytest.mark.integration

WRONG = "const a: string = 1;"


def pid_of(checker: DenoChecker) -> int | None:
    """Return the id of the checker's process, once that is warm."""
    return checker.process.pid if checker.process is not None else None


async def test_a_process_that_died_is_replaced_before_anybody_notices() -> None:
    async with deno_checker(COMMAND, PATIENT) as checker:
        first = await eventually(lambda: pid_of(checker))
        os.kill(first, signal.SIGKILL)
        assert len(await complaints(checker, WRONG)) == 1
        assert pid_of(checker) != first
        assert await checker.health() is None


async def test_a_program_that_takes_too_long_costs_its_process_and_delays_nobody_for_good() -> None:
    async with deno_checker(COMMAND, replace(PATIENT, patience_s=0.4)) as checker:
        first = await eventually(lambda: pid_of(checker))
        message = why_unchecked(await checker.check(ENDLESS, (), TOOLS))
        assert message == "Types were not checked: the checker did not answer within 0.4 s."
        assert await eventually(lambda: pid_of(checker)) != first

        async def checked() -> bool:
            found = await checker.check(WRONG, (), TOOLS)
            return [told.severity for told in found] == ["error"]

        assert await eventually(checked)


@pytest.mark.parametrize(
    "worn", [replace(PATIENT, checks=2), replace(PATIENT, resident_mib=1)], ids=["used", "large"]
)
async def test_a_worn_process_is_replaced(worn: CheckerLimits) -> None:
    async with deno_checker(COMMAND, worn) as checker:
        pids: set[int] = set()
        for _ in range(3):
            pids.add(await eventually(lambda: pid_of(checker)))
            assert len(await complaints(checker, WRONG)) == 1
        assert len(pids) == 3


async def test_no_program_waits_behind_too_many() -> None:
    async with deno_checker(COMMAND, replace(PATIENT, most_waiting=2)) as checker:
        code = "const n: number = 'x';"
        found = await asyncio.gather(*(checker.check(code, (), TOOLS) for _ in range(4)))
        told = sorted(each.message for (each,) in found)
        unchecked = "Types were not checked: 2 programs are waiting for the checker."
        assert told[2:] == [unchecked, unchecked]
        (again,) = await checker.check(code, (), TOOLS)
        assert again.severity == "error"


async def test_a_checker_that_cannot_start_says_so_at_once() -> None:
    async with deno_checker(CheckerCommand("/nowhere/deno"), PATIENT) as checker:
        assert "cannot be started" in await eventually(checker.health)
        message = why_unchecked(await checker.check("return 1;", (), TOOLS))
        assert "/nowhere/deno cannot be started" in message


async def test_what_is_no_language_server_is_not_waited_for() -> None:
    for program in ("true", "cat"):
        command = CheckerCommand(program)
        async with deno_checker(command, replace(PATIENT, rest_s=60)) as checker:
            assert await eventually(checker.health)


async def test_a_cold_checker_starts_with_the_first_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    starts: list[CheckerCommand] = []
    start = CheckerProcess.start

    async def recorded(command: CheckerCommand) -> CheckerProcess:
        starts.append(command)
        return await start(command)

    monkeypatch.setattr(CheckerProcess, "start", recorded)
    async with deno_checker(COMMAND, replace(PATIENT, is_warm=False)) as checker:
        await asyncio.sleep(0)  # a start in the background would begin now
        assert starts == []
        assert await checker.health() is None
        assert len(await complaints(checker, WRONG)) == 1
        assert starts == [COMMAND]
    async with deno_checker(COMMAND, replace(PATIENT, is_warm=False)):
        pass  # ended without one


async def test_a_cold_checker_ends_when_it_is_idle_and_starts_again() -> None:
    before = _denos()
    async with deno_checker(COMMAND, replace(PATIENT, is_warm=False, idle_s=0.0)) as checker:
        for _ in range(2):
            assert len(await complaints(checker, WRONG)) == 1
            await eventually(lambda: pid_of(checker) is None)
    assert _denos() <= before


def _denos() -> set[int]:
    """Pids of the Deno processes below this one: the session's Postgres starts others at will."""
    found: set[int] = set()
    for each in descendants_of(os.getpid()):
        with suppress(psutil.NoSuchProcess):
            found |= {each.pid} if each.name() == "deno" else set()
    return found


async def test_nothing_is_left_of_it() -> None:
    async with deno_checker(COMMAND, PATIENT) as checker:
        await complaints(checker, "return 1;")
        pid = pid_of(checker)
        assert pid is not None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    async with deno_checker(COMMAND, PATIENT):
        pass  # ended while it starts
