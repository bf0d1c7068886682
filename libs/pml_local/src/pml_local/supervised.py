"""A supervised part: restarted when it exits unexpectedly, with exponential backoff."""

import asyncio
from dataclasses import dataclass
from time import monotonic

from pml_local.errors import PartFailedError, StackError
from pml_local.events import (
    OnEvent,
    PartExited,
    PartReady,
    PartRestarting,
    PartStalled,
    PartStarting,
    PartStopped,
)
from pml_local.parts import Part, start_on_free_port, start_part
from pml_local.process import ChildProcess

FIRST_DELAY = 0.1
LONGEST_DELAY = 60.0
STEADY_SECONDS = 30.0
_MOST_DOUBLINGS = 100


@dataclass(frozen=True, slots=True)
class Failures:
    """Number of consecutive failures of a part; a steady run resets it."""

    count: int = 0

    def after_running(self, seconds: float) -> "Failures":
        """The count after one more failure, `seconds` after the last start."""
        return Failures(1 if seconds >= STEADY_SECONDS else self.count + 1)

    @property
    def delay(self) -> float:
        """Seconds to wait before the next start: 0.1, 0.2, 0.4 … at most a minute."""
        doublings = min(max(0, self.count - 1), _MOST_DOUBLINGS)
        return min(LONGEST_DELAY, FIRST_DELAY * 2**doublings)


class SupervisedPart:
    """A part and the task that watches it."""

    def __init__(self, part: Part, on_event: OnEvent) -> None:
        self.part = part
        self._on_event = on_event
        self._process: ChildProcess | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._up_before = False

    @property
    def process(self) -> ChildProcess | None:
        """The running process; None before the start, between restarts and after the stop."""
        running = self._process is not None and self._process.returncode is None
        return self._process if running else None

    async def start(self) -> None:
        """Start it and supervise it from then on; raises PartFailedError."""
        process = await self._bring_up()
        self._watcher = asyncio.create_task(
            self._supervise(process), name=f"supervise {self.part.name}"
        )

    async def stop(self) -> None:
        """Stop it and its supervision; safe in any state."""
        if self._watcher is not None:
            self._watcher.cancel()
            await asyncio.wait([self._watcher])
            self._watcher = None
        if (process := self.process) is not None:
            code = await process.stop()
            self._on_event(PartStopped(self.part.name, code))

    async def restart(self) -> None:
        """Stop it and start it again at once."""
        await self.stop()
        await self.start()

    async def replace(self, reason: str) -> None:
        """Kill a process that does not do its work; it is restarted as after a crash."""
        if (process := self.process) is not None:
            self._on_event(PartStalled(self.part.name, reason))
            await process.stop()

    def kill(self) -> None:
        """Send SIGKILL, without waiting for the exit."""
        if (process := self.process) is not None:
            process.send_kill()

    async def _bring_up(self) -> ChildProcess:
        name, began = self.part.name, monotonic()
        self._on_event(PartStarting(name))
        # Once it has been ready, its port is known to others.
        start = start_part if self._up_before else start_on_free_port
        process = self._process = await start(self.part)
        self._up_before = True
        self._on_event(PartReady(name, process.pid, self.part.port, monotonic() - began))
        return process

    async def _supervise(self, process: ChildProcess) -> None:
        failures = Failures()
        while True:
            started = monotonic()
            code = await process.wait()
            self._on_event(PartExited(self.part.name, code, process.command.log))
            failures = failures.after_running(monotonic() - started)
            ended = PartFailedError(self.part.name, f"ended with code {code}", process.command.log)
            process, failures = await self._start_again(failures, ended)

    async def _start_again(
        self, failures: Failures, error: Exception
    ) -> tuple[ChildProcess, Failures]:
        """Retry until it is ready."""
        while True:
            reason = error.reason if isinstance(error, PartFailedError) else str(error)
            self._on_event(PartRestarting(self.part.name, reason, failures.count, failures.delay))
            await asyncio.sleep(failures.delay)
            try:
                return await self._bring_up(), failures
            except (StackError, OSError) as again:
                error, failures = again, failures.after_running(0)
