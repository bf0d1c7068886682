"""Supervision of a part, with trivial processes."""

import asyncio
import sys
from pathlib import Path

import pytest

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_local import supervised
from pml_local.errors import PartFailedError, tail_of
from pml_local.events import Event, PartReady, PartRestarting
from pml_local.parts import start_part
from pml_local.process import ChildProcess, Command, run_to_end
from pml_local.supervised import SupervisedPart


class Program:
    """A part that runs a line of Python and is ready at once."""

    name = "program"
    port = 0
    start_within = 5.0

    def __init__(self, log: Path, line: str, problem: str | None = None) -> None:
        self.command = Command(self.name, (sys.executable, "-c", line), log, stop_within=0.2)
        self._problem = problem

    async def prepare(self) -> Command:
        """Nothing to prepare."""
        return self.command

    async def problem(self, pid: int) -> str | None:
        """Return the test's fixed problem."""
        return self._problem


SLEEP = "import time; time.sleep(600)"
DEAF = "import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); " + SLEEP


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """The programs' log file."""
    return tmp_path / "program.log"


async def test_one_that_ends_again_and_again_is_started_until_it_stays(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervised, "FIRST_DELAY", 0.0)
    program = Program(log, "import sys; sys.exit('out of luck')")
    events: list[Event] = []

    def tries() -> list[PartRestarting]:
        return [event for event in events if isinstance(event, PartRestarting)]

    kept = SupervisedPart(program, events.append)
    await kept.start()
    await eventually(lambda: len(tries()) > 14)
    assert [each.failures for each in tries()] == [*range(1, len(tries()) + 1)]
    assert {each.reason for each in tries()} == {"ended with code 1"}
    program.command = Command("program", (sys.executable, "-c", SLEEP), log)
    await eventually(lambda: isinstance(events[-1], PartReady) and kept.process)
    await kept.stop()


async def test_one_that_cannot_even_start_again_is_reported_with_the_reason(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervised, "FIRST_DELAY", 0.0)
    program = Program(log, SLEEP)
    events: list[Event] = []
    kept = SupervisedPart(program, events.append)
    await kept.start()
    program.command = Command("program", ("/nowhere/program",), log)
    monkeypatch.setattr(Program, "problem", _not_ready)
    kept.kill()
    reasons = "program ended with code 127 before it was ready"
    await eventually(
        lambda: [e for e in events if isinstance(e, PartRestarting) and e.reason in reasons]
    )
    assert "cannot run /nowhere/program" in tail_of(log)[-1]
    await kept.stop()
    assert kept.process is None


async def _not_ready(_: Program, __: int) -> str | None:
    return "not yet"


async def test_one_that_ignores_the_signal_is_killed_after_its_grace(log: Path) -> None:
    process = await ChildProcess.start(Program(log, DEAF).command)
    await eventually(lambda: log.read_text())
    async with asyncio.timeout(PATIENCE_S):
        assert await process.stop() == -9


async def test_stopping_twice_and_before_the_start_is_harmless(log: Path) -> None:
    events: list[Event] = []
    kept = SupervisedPart(Program(log, SLEEP), events.append)
    await kept.stop()
    await kept.start()
    assert isinstance(events[-1], PartReady)
    await kept.stop()
    await kept.stop()


async def test_a_start_that_is_cancelled_leaves_no_process(log: Path) -> None:
    program = Program(log, SLEEP, problem="never")
    starting = asyncio.create_task(start_part(program))
    await eventually(log.exists)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting


@pytest.fixture
def large_log(log: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A log over its size bound."""
    monkeypatch.setattr("pml_local.process.LOG_BYTES", 10)
    log.write_text("x" * 11)
    return log


async def test_a_log_that_grew_large_is_put_aside(large_log: Path) -> None:
    command = Command("echo", (sys.executable, "-c", "print('new')"), large_log)
    await run_to_end(command, within=PATIENCE_S)
    assert tail_of(large_log) == ["new"]
    assert tail_of(large_log.with_name("program.log.1")) == ["x" * 11]


async def test_a_set_up_that_fails_or_hangs_is_named(log: Path) -> None:
    failing = Command("tool", (sys.executable, "-c", "import sys; sys.exit(sys.stdin.read())"), log)
    with pytest.raises(PartFailedError, match=r"tool set-up failed with code 1 (.|\n)*so sorry"):
        await run_to_end(failing, "so sorry", within=PATIENCE_S)
    hanging = Command("tool", (sys.executable, "-c", SLEEP), log)
    with pytest.raises(PartFailedError, match="did not end within"):
        await run_to_end(hanging, within=0.1)  # waits: it hangs
