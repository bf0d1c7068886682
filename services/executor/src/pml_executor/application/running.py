"""The runs of this process, each of which can be stopped."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

from pml_common.bus.errors import Fenced
from pml_common.contracts.base import Message
from pml_common.contracts.executor import CancelRun, RunWorkflow
from pml_common.contracts.scope import Scope


class Stopped(Fenced):
    """The run was cancelled: its journal is for whoever handles that."""

    def __init__(self, workflow_id: UUID) -> None:
        super().__init__(f"workflow {workflow_id}", 0)

    def __str__(self) -> str:
        return f"{self.subject} was cancelled while it ran here"


class Running:
    """Handles runs until they end or are stopped."""

    def __init__(self, handle: Callable[[RunWorkflow], Awaitable[Sequence[Message]]]) -> None:
        self._handle = handle
        self._stops: dict[tuple[Scope, UUID], set[asyncio.Timeout]] = {}

    async def run(self, command: RunWorkflow) -> Sequence[Message]:
        """Handle a run. Raises Stopped."""
        key, stop = (command.scope, command.workflow_id), asyncio.timeout(None)
        self._stops.setdefault(key, set()).add(stop)
        try:
            async with stop:
                return await self._handle(command)
        except TimeoutError:
            if not stop.expired():
                raise
            raise Stopped(command.workflow_id) from None
        finally:
            self._stops[key].discard(stop)
            if not self._stops[key]:
                del self._stops[key]

    async def stop(self, command: CancelRun) -> None:
        """Stop what this process runs of it, at once; whoever takes the command ends it."""
        for stop in self._stops.get((command.scope, command.workflow_id), ()):
            stop.reschedule(asyncio.get_running_loop().time())
