"""Notifies callers of this process of their workflows, whichever process advances them."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from uuid import UUID

from typing_extensions import override

from pml_common.contracts.gateway import ApprovalRequested, WorkflowFinished
from pml_common.contracts.scope import Scope
from pml_gateway.domain.workflow.workflow import Workflow
from pml_gateway.ports import Notifier, Waiter


class LocalWaiter(Waiter):
    def __init__(self, notifier: "LocalNotifier") -> None:
        self._notifier = notifier
        self._woken = asyncio.Event()
        self._latest: Workflow | None = None

    @property
    @override
    def over(self) -> bool:
        return self._notifier.closed

    @override
    async def wait(self, timeout_s: float) -> Workflow | None:
        try:
            async with asyncio.timeout(timeout_s):
                await self._woken.wait()
        except TimeoutError:
            pass
        self._woken.clear()
        latest, self._latest = self._latest, None
        return latest

    def wake(self, workflow: Workflow | None) -> None:
        """End the wait, with the workflow if it is at hand."""
        self._latest = workflow or self._latest
        self._woken.set()


class LocalNotifier(Notifier):
    """Notified by this process's own handlers, and by the bus of changes in others."""

    def __init__(self) -> None:
        self.closed = False
        self._waiting: dict[tuple[Scope, UUID], set[LocalWaiter]] = {}

    @override
    @contextmanager
    def subscribe(self, scope: Scope, workflow_id: UUID) -> Generator[LocalWaiter]:
        key, waiter = (scope, workflow_id), LocalWaiter(self)
        self._waiting.setdefault(key, set()).add(waiter)
        try:
            yield waiter
        finally:
            self._waiting[key].discard(waiter)
            if not self._waiting[key]:
                del self._waiting[key]

    @override
    def notify(self, workflow: Workflow) -> None:
        for waiter in self._waiting.get((workflow.scope, workflow.workflow_id), ()):
            waiter.wake(workflow)

    @override
    def is_awaited(self, scope: Scope, workflow_id: str) -> bool:
        return (scope, UUID(workflow_id)) in self._waiting

    async def on_message(self, message: WorkflowFinished | ApprovalRequested) -> None:
        """Wake the callers that wait for this workflow."""
        for waiter in self._waiting.get((message.scope, message.workflow_id), ()):
            waiter.wake(None)

    def close(self) -> None:
        """End all waiting."""
        self.closed = True
        for waiting in self._waiting.values():
            for waiter in waiting:
                waiter.wake(None)
