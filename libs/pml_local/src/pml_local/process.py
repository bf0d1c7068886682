"""A child process with a log, a bounded stop, and a lifetime tied to ours.

Each child leads its own session: Ctrl-C at a terminal reaches only the supervisor, which then stops
the parts in order, and processes left in a child's process group can be killed. `parent_death.py`
ends it when we are killed. That tie is to the starting thread, so start children from a thread that
lives long enough: the event loop's.
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
from typing import BinaryIO, Protocol

import psutil

from pml_local.account import Account
from pml_local.errors import PartFailedError

PARENT_DEATH = Path(__file__).with_name("parent_death.py")
POLL_SECONDS = 0.02
LOG_BYTES = 8 * 1024 * 1024


class Started(Protocol):
    """A started process, as `asyncio.subprocess.Process` is one."""

    @property
    def pid(self) -> int:
        """Its process id."""
        ...

    @property
    def returncode(self) -> int | None:
        """Its exit code; None while it is running."""
        ...

    @property
    def stdin(self) -> asyncio.StreamWriter | None:
        """Its standard input, if that is a pipe."""
        ...

    async def wait(self) -> int:
        """Wait for its exit and return its exit code."""
        ...

    def send_signal(self, signal: int, /) -> None:
        """Send it a signal; raises ProcessLookupError when it has ended."""
        ...


class Launcher(Protocol):
    """Another way to start a command than to run its program."""

    async def launch(self, command: "Command", log: BinaryIO) -> Started:
        """Start it with its output in the log; raises PartFailedError."""
        ...


@dataclass(frozen=True, slots=True)
class Command:
    """A program's arguments and environment, and how to stop it."""

    name: str
    argv: Sequence[str]
    log: Path
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    cwd: Path | None = None
    account: Account | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    stop_within: float = 10.0
    orphan_signal: signal.Signals = signal.SIGKILL
    """Signal that the kernel sends it when we die without stopping it."""
    pass_fds: Sequence[int] = ()
    """File descriptors that only this child inherits, under the same numbers."""
    launcher: Launcher | None = None
    """Starts it; None: its program is run."""

    def argv_with_parent_death(self) -> list[str]:
        """The argument vector that is_running it through `parent_death.py`."""
        uid, gid = (self.account.uid, self.account.gid) if self.account else (-1, -1)
        tie = (os.getpid(), int(self.orphan_signal), uid, gid)
        return [sys.executable, "-I", "-S", str(PARENT_DEATH), *map(str, tie), *self.argv]


class ChildProcess:
    """A child process, running or ended; created by `start`."""

    def __init__(self, command: Command, process: Started) -> None:
        self.command = command
        self._process = process
        self._swept = False

    @classmethod
    async def start(cls, command: Command, stdin: int = DEVNULL) -> "ChildProcess":
        """Start it. A missing program shows only in the exit code (127) and the log."""
        with _log_for(command.log) as log:
            if command.launcher is not None:
                return cls(command, await command.launcher.launch(command, log))
            process = await asyncio.create_subprocess_exec(
                *command.argv_with_parent_death(),
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
        """Its pid, also its session and process group."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """None while it is_running; minus the signal when one ended it."""
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
        """Wait for its exit, kill what is left in its process group, and return its exit code."""
        code = await self._process.wait()
        if not self._swept:  # only once: later the pid may name another group
            self._swept = True
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        return code

    async def stop(self) -> int:
        """Send the stop signal, SIGKILL after `stop_within` seconds, and end its descendants
        too."""
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
        """Send SIGKILL, as in a crash, and wait for the exit."""
        self.send_kill()
        return await self.wait()

    def send_kill(self) -> None:
        """Send SIGKILL without waiting for the exit."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            self._process.send_signal(number)


async def run_to_end(command: Command, text: str = "", *, within: float) -> None:
    """Run it to its exit with `text` as its input. Raises PartFailedError on failure or
    time-out."""
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
    """All descendants of a process; empty when there is no such process."""
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def kill_all(processes: Sequence[psutil.Process]) -> None:
    """Send SIGKILL to those still running; psutil detects reused pids."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()


def is_running(process: psutil.Process) -> bool:
    """Whether a process is running; a zombie is not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def began(pid: int) -> float | None:
    """When a process began; None for one that does not run."""
    try:
        process = psutil.Process(pid)
        return process.create_time() if is_running(process) else None
    except psutil.NoSuchProcess:
        return None


def terminate_all(
    processes: Sequence[psutil.Process], number: signal.Signals, within: float
) -> None:
    """Signal processes that are not our children, and SIGKILL the rest. Blocks up to `within`
    seconds."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)
    deadline = monotonic() + within
    while any(map(is_running, processes)) and monotonic() < deadline:
        sleep(POLL_SECONDS)
    kill_all(processes)


def _log_for(path: Path) -> BinaryIO:
    """Open the log for appending; one over LOG_BYTES is renamed to `<name>.1` first."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size > LOG_BYTES:
        path.replace(path.with_name(f"{path.name}.1"))
    return path.open("ab")
