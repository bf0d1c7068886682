"""Where callers of this process wait for their workflows, whichever process finishes them."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from uuid import UUID

from pml_common.contracts.gateway import ApprovalRequested, WorkflowFinished
from pml_common.contracts.scope import Scope
from pml_gateway.domain.workflow.workflow import Workflow


class MemoryWaiter:
    """See `ports.Waiter`."""

    def __init__(self, room: "MemoryNotifier") -> None:
        self._room = room
        self._bell = asyncio.Event()
        self._told: Workflow | None = None

    @property
    def over(self) -> bool:
        """See `ports.Waiter`."""
        return self._room.closed

    async def wait(self, timeout_s: float) -> Workflow | None:
        """See `ports.Waiter`."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._bell.wait()
        except TimeoutError:
            pass
        self._bell.clear()
        told, self._told = self._told, None
        return told

    def ring(self, workflow: Workflow | None) -> None:
        """Wake whoever waits."""
        self._told = workflow or self._told
        self._bell.set()


class MemoryNotifier:
    """See `ports.Notifier`; told by this process's own handlers, and by the bus what happens in
    others."""

    def __init__(self) -> None:
        self.closed = False
        self._waiting: dict[tuple[Scope, UUID], set[MemoryWaiter]] = {}

    @contextmanager
    def subscribe(self, scope: Scope, workflow_id: UUID) -> Generator[MemoryWaiter]:
        """See `ports.Notifier`."""
        key, waiter = (scope, workflow_id), MemoryWaiter(self)
        self._waiting.setdefault(key, set()).add(waiter)
        try:
            yield waiter
        finally:
            self._waiting[key].discard(waiter)
            if not self._waiting[key]:
                del self._waiting[key]

    def notify(self, workflow: Workflow) -> None:
        """See `ports.Notifier`."""
        for waiter in self._waiting.get((workflow.scope, workflow.workflow_id), ()):
            waiter.ring(workflow)

    def is_awaited(self, scope: Scope, workflow_id: str) -> bool:
        """Whether somebody waits for this workflow."""
        return (scope, UUID(workflow_id)) in self._waiting

    async def on_message(self, message: WorkflowFinished | ApprovalRequested) -> None:
        """Wake whoever waits for this workflow."""
        for waiter in self._waiting.get((message.scope, message.workflow_id), ()):
            waiter.ring(None)

    def close(self) -> None:
        """Let nobody wait any longer."""
        self.closed = True
        for waiting in self._waiting.values():
            for waiter in waiting:
                waiter.ring(None)
