"""One child process that writes to a log, can be stopped within a bound, and cannot outlive us.

Each child leads its own session: Ctrl-C at a terminal reaches the supervisor alone, which then
stops the parts in order, and what a child leaves in its process group can be swept.
`parent_death.py` ties it to us for the case that we are killed. The tie is to the thread that
starts it, so start children from a thread that lives as long as they should: the event loop's.
"""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import BinaryIO

import psutil

from pml_local.account import Account
from pml_local.errors import PartFailedError

PARENT_DEATH = Path(__file__).with_name("parent_death.py")
POLL_SECONDS = 0.02
LOG_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Command:
    """How to run a program, and how to end it."""

    name: str
    argv: Sequence[str]
    log: Path
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    cwd: Path | None = None
    account: Account | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    stop_within: float = 10.0
    orphan_signal: signal.Signals = signal.SIGKILL
    """What the kernel sends it when we die without stopping it."""
    pass_fds: Sequence[int] = ()
    """Open files that it gets under the same numbers, and no other child does."""

    def leashed(self) -> list[str]:
        """The argument vector that runs it under the leash."""
        uid, gid = (self.account.uid, self.account.gid) if self.account else (-1, -1)
        tie = (os.getpid(), int(self.orphan_signal), uid, gid)
        return [sys.executable, "-I", "-S", str(PARENT_DEATH), *map(str, tie), *self.argv]


class ChildProcess:
    """A running, or ended, child; made by `start`."""

    def __init__(self, command: Command, process: asyncio.subprocess.Process) -> None:
        self.command = command
        self._process = process
        self._swept = False

    @classmethod
    async def start(cls, command: Command, stdin: int = DEVNULL) -> "ChildProcess":
        """Start it; that the program exists shows only in its exit code (127) and log."""
        with _log_for(command.log) as log:
            process = await asyncio.create_subprocess_exec(
                *command.leashed(),
                stdin=stdin,
                stdout=log,
                stderr=log,
                env=dict(command.env),
                cwd=command.cwd,
                start_new_session=True,
                pass_fds=tuple(command.pass_fds),
            )
        return cls(command, process)

    @property
    def pid(self) -> int:
        """Also its session and process group."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """None while it runs; minus the signal when one ended it."""
        return self._process.returncode

    async def feed(self, text: str) -> None:
        """Write its whole input and close it; raises ValueError unless stdin is a pipe."""
        stdin = self._process.stdin
        if stdin is None:
            raise ValueError(f"{self.command.name} was not started with a pipe as stdin")
        with suppress(BrokenPipeError, ConnectionResetError):
            stdin.write(text.encode())
            await stdin.drain()
        stdin.close()

    async def wait(self) -> int:
        """Wait for its end, sweep what it left in its group, and return its exit code."""
        code = await self._process.wait()
        if not self._swept:  # once, at its end: later its number may name another group
            self._swept = True
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        return code

    async def stop(self) -> int:
        """Ask it to end, insist after `stop_within`, and end its descendants too."""
        descendants = descendants_of(self.pid) if self.returncode is None else []
        self._signal(self.command.stop_signal)
        try:
            async with asyncio.timeout(self.command.stop_within):
                await self._process.wait()
        except TimeoutError:
            self._signal(signal.SIGKILL)
        code = await self.wait()
        kill_all(descendants)
        return code

    async def kill(self) -> int:
        """SIGKILL, as a crash would end it."""
        self.send_kill()
        return await self.wait()

    def send_kill(self) -> None:
        """SIGKILL, without waiting for its end."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            self._process.send_signal(number)


async def run_to_end(command: Command, text: str = "", *, within: float) -> None:
    """Run it on `text` as its input; raises PartFailedError when it fails or takes too long."""
    child = await ChildProcess.start(command, stdin=PIPE)
    try:
        async with asyncio.timeout(within):
            await child.feed(text)
            code = await child.wait()
    except TimeoutError:
        reason = f"set-up did not end within {within:g} s ({Path(command.argv[0]).name})"
        raise PartFailedError(command.name, reason, command.log) from None
    finally:
        if child.returncode is None:
            await child.kill()
    if code != 0:
        reason = f"set-up failed with code {code} ({Path(command.argv[0]).name})"
        raise PartFailedError(command.name, reason, command.log)


def descendants_of(pid: int) -> list[psutil.Process]:
    """Children, their children and so on; empty when there is no such process."""
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def kill_all(processes: Sequence[psutil.Process]) -> None:
    """SIGKILL those that still run; psutil tells them from later users of the same pid."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()


def runs(process: psutil.Process) -> bool:
    """Whether it still does anything; dead and not reaped, it does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def end_all(processes: Sequence[psutil.Process], number: signal.Signals, within: float) -> None:
    """Signal processes that are not our children, and SIGKILL those left. Blocks up to `within`."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)
    deadline = monotonic() + within
    while any(map(runs, processes)) and monotonic() < deadline:
        sleep(POLL_SECONDS)
    kill_all(processes)


def _log_for(path: Path) -> BinaryIO:
    """The log, opened for appending; one that grew large becomes `<name>.1` first."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size > LOG_BYTES:
        path.replace(path.with_name(f"{path.name}.1"))
    return path.open("ab")
