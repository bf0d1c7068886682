"""Runs under way in this process, each of which can be stopped."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

from pml_common.bus.errors import Fenced
from pml_common.contracts.base import Message
from pml_common.contracts.executor import CancelRun, RunWorkflow
from pml_common.contracts.scope import Scope


class RunStopped(Fenced):
    """The run was cancelled; the handler of `cancel-run` closes its journal."""

    def __init__(self, workflow_id: UUID) -> None:
        super().__init__(f"workflow {workflow_id}", 0)

    def __str__(self) -> str:
        return f"{self.subject} was cancelled while it ran here"


class ActiveRuns:
    """Runs commands until they end or are stopped."""

    def __init__(self, handle: Callable[[RunWorkflow], Awaitable[Sequence[Message]]]) -> None:
        self._handle = handle
        self._stops: dict[tuple[Scope, UUID], set[asyncio.Timeout]] = {}

    async def run(self, command: RunWorkflow) -> Sequence[Message]:
        """Handle a run command. Raises RunStopped."""
        key, stop = (command.scope, command.workflow_id), asyncio.timeout(None)
        self._stops.setdefault(key, set()).add(stop)
        try:
            async with stop:
                return await self._handle(command)
        except TimeoutError:
            if not stop.expired():
                raise
            raise RunStopped(command.workflow_id) from None
        finally:
            self._stops[key].discard(stop)
            if not self._stops[key]:
                del self._stops[key]

    async def stop(self, command: CancelRun) -> None:
        """Stop this process's runs of the workflow immediately; the executor that receives the
        command from the queue ends the run."""
        for stop in self._stops.get((command.scope, command.workflow_id), ()):
            stop.reschedule(asyncio.get_running_loop().time())
