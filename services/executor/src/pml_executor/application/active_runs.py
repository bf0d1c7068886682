"""Runs under way in this process, each of which can be stopped."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from pml_common.bus.errors import Fenced
from pml_common.contracts.base import Message
from pml_common.contracts.executor import CancelRun, RunWorkflow
from pml_common.contracts.scope import Scope

ELSEWHERE_S = 0.1
"""Time in which another executor receives a cancellation and stores what its attempt had not."""


class RunStopped(Fenced):
    """The run was cancelled; the handler of `cancel-run` closes its journal."""

    def __init__(self, workflow_id: UUID) -> None:
        super().__init__(f"workflow {workflow_id}", 0)

    def __str__(self) -> str:
        return f"{self.subject} was cancelled while it ran here"


@dataclass(frozen=True, eq=False)
class _ActiveRun:
    """A command that is being handled; `ended` is set once it is not any more."""

    stop: asyncio.Timeout
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class ActiveRuns:
    """Runs commands until they end or are stopped."""

    def __init__(self, handle: Callable[[RunWorkflow], Awaitable[Sequence[Message]]]) -> None:
        self._handle = handle
        self._runs: dict[tuple[Scope, UUID], set[_ActiveRun]] = {}

    async def run(self, command: RunWorkflow) -> Sequence[Message]:
        """Handle a run command. Raises RunStopped."""
        key, active = (command.scope, command.workflow_id), _ActiveRun(asyncio.timeout(None))
        self._runs.setdefault(key, set()).add(active)
        try:
            async with active.stop:
                return await self._handle(command)
        except TimeoutError:
            if not active.stop.expired():
                raise
            raise RunStopped(command.workflow_id) from None
        finally:
            active.ended.set()
            self._runs[key].discard(active)
            if not self._runs[key]:
                del self._runs[key]

    async def stop(self, command: CancelRun) -> None:
        """Stop this process's runs of the workflow immediately; the executor that receives the
        command from the queue ends the run."""
        for active in self._of(command):
            if not active.stop.expired():
                active.stop.reschedule(asyncio.get_running_loop().time())

    async def stopped(self, command: CancelRun) -> None:
        """Stop this process's runs of the workflow and wait for them; without one, wait for an
        executor that may have one."""
        runs = self._of(command)
        if not runs:
            await asyncio.sleep(ELSEWHERE_S)
        await self.stop(command)
        for active in runs:
            await active.ended.wait()

    def _of(self, command: CancelRun) -> Sequence[_ActiveRun]:
        return tuple(self._runs.get((command.scope, command.workflow_id), ()))
