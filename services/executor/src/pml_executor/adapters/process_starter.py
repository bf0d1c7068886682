"""Starts sandbox processes, each in its own task: a slow or failing start delays nothing else."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from opentelemetry import trace

from pml_common.telemetry.spans import spanning
from pml_executor.ports import Sandbox, SandboxUnavailable

_tracer = trace.get_tracer(__name__)
log = logging.getLogger(__name__)

_BACKOFF_S = (0.2, 0.5, 1.0, 2.0, 5.0)


class SandboxProcess(Sandbox, Protocol):
    """A sandbox in a process of its own, which can serve several leases in turn."""

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        ...

    @property
    def finished(self) -> bool:
        """Whether its program ended in order, so that it may be renewed."""
        ...

    async def renew(self, *, realm: bool = False) -> bool:
        """Prepare it for another program, in a Worker of its own or in a realm, and return whether
        it is ready."""
        ...

    async def close(self) -> None:
        """Kill the process and wait until nothing of it is left."""
        ...


class ProcessStarter:
    """Passes each process to `ready` and then calls `ended`, after a failure with a delay."""

    def __init__(
        self,
        start: Callable[[], Awaitable[SandboxProcess]],
        ready: Callable[[SandboxProcess], None],
        ended: Callable[[], None],
    ) -> None:
        self._start = start
        self._ready = ready
        self._report_end = ended
        self._tasks: set[asyncio.Task[None]] = set()
        self._failures = 0
        self.problem: str | None = None

    def __len__(self) -> int:
        return len(self._tasks)

    def begin(self) -> None:
        """Start one more process."""
        task = asyncio.create_task(self._start_one(), name="sandbox-start")
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    async def cancel_all(self) -> None:
        """Cancel the starts under way."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._report_end()

    async def _start_one(self) -> None:
        try:
            with spanning(_tracer, "start sandbox", {}):
                sandbox = await self._start()
        except SandboxUnavailable as error:
            log.warning("%s", error)
            await self._back_off(str(error))
            return
        except Exception as error:
            log.exception("starting a sandbox failed")
            await self._back_off(f"{type(error).__name__}: {error}")
            return
        self.problem, self._failures = None, 0
        self._ready(sandbox)

    async def _back_off(self, problem: str) -> None:
        self.problem = problem
        delay = _BACKOFF_S[min(self._failures, len(_BACKOFF_S) - 1)]
        self._failures += 1
        await asyncio.sleep(delay)
