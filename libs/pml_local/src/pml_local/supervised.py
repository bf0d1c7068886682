"""One part kept running: started again with growing delays when it ends unasked."""

import asyncio
from collections.abc import Callable
from time import monotonic

from pml_local.backoff import Failures
from pml_local.errors import PartFailedError, StackError
from pml_local.events import (
    OnEvent,
    PartExited,
    PartReady,
    PartRestarting,
    PartStarting,
    PartStopped,
)
from pml_local.parts import Part, start_part
from pml_local.process import ChildProcess

GiveUp = Callable[[Exception], None]


class SupervisedPart:
    """A part and the task that watches it; `give_up` is called when it fails too often."""

    def __init__(self, part: Part, on_event: OnEvent, give_up: GiveUp) -> None:
        self.part = part
        self._on_event = on_event
        self._give_up = give_up
        self._process: ChildProcess | None = None
        self._watcher: asyncio.Task[None] | None = None

    @property
    def process(self) -> ChildProcess | None:
        """The running process; None before the start, between restarts and after the stop."""
        running = self._process is not None and self._process.returncode is None
        return self._process if running else None

    async def start(self) -> None:
        """Start it and keep it running from then on; raises PartFailedError."""
        process = await self._bring_up()
        self._watcher = asyncio.create_task(self._keep(process), name=f"keep {self.part.name}")

    async def stop(self) -> None:
        """End it and stop watching; safe to call in any state."""
        if self._watcher is not None:
            self._watcher.cancel()
            await asyncio.wait([self._watcher])
            self._watcher = None
        if (process := self.process) is not None:
            code = await process.stop()
            self._on_event(PartStopped(self.part.name, code))

    async def restart(self) -> None:
        """Stop it and start it again, at once."""
        await self.stop()
        await self.start()

    def kill(self) -> None:
        """SIGKILL it, whatever waits for its end."""
        if (process := self.process) is not None:
            process.send_kill()

    async def _bring_up(self) -> ChildProcess:
        name, began = self.part.name, monotonic()
        self._on_event(PartStarting(name))
        process = self._process = await start_part(self.part)
        self._on_event(PartReady(name, process.pid, self.part.port, monotonic() - began))
        return process

    async def _keep(self, process: ChildProcess | None) -> None:
        failures = Failures()
        while process is not None:
            started = monotonic()
            code = await process.wait()
            self._on_event(PartExited(self.part.name, code, process.command.log))
            failures = failures.after_running(monotonic() - started)
            ended = PartFailedError(self.part.name, f"ended with code {code}", process.command.log)
            process, failures = await self._start_again(failures, ended)

    async def _start_again(
        self, failures: Failures, error: Exception
    ) -> tuple[ChildProcess | None, Failures]:
        """Try until it is ready; no process when that failed too often."""
        while not failures.too_many:
            reason = error.reason if isinstance(error, PartFailedError) else str(error)
            self._on_event(PartRestarting(self.part.name, reason, failures.count, failures.delay))
            await asyncio.sleep(failures.delay)
            try:
                return await self._bring_up(), failures
            except (StackError, OSError) as again:
                error, failures = again, failures.after_running(0)
        self._give_up(error)
        return None, failures
