"""Where callers of this process wait for their workflows, whichever process finishes them."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from uuid import UUID

from pml_common.contracts.gateway import ApprovalRequested, WorkflowFinished
from pml_common.contracts.scope import Scope
from pml_gateway.domain.workflow import Workflow


class MemoryNews:
    """See `ports.News`."""

    def __init__(self, room: "MemoryNewsroom") -> None:
        self._room = room
        self._bell = asyncio.Event()
        self._told: Workflow | None = None

    @property
    def over(self) -> bool:
        """See `ports.News`."""
        return self._room.closed

    async def heard(self, timeout_s: float) -> Workflow | None:
        """See `ports.News`."""
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


class MemoryNewsroom:
    """See `ports.Newsroom`; told by this process's own handlers, and by the bus what happens in
    others."""

    def __init__(self) -> None:
        self.closed = False
        self._waiting: dict[tuple[Scope, UUID], set[MemoryNews]] = {}

    @contextmanager
    def expect(self, scope: Scope, workflow_id: UUID) -> Generator[MemoryNews]:
        """See `ports.Newsroom`."""
        key, news = (scope, workflow_id), MemoryNews(self)
        self._waiting.setdefault(key, set()).add(news)
        try:
            yield news
        finally:
            self._waiting[key].discard(news)
            if not self._waiting[key]:
                del self._waiting[key]

    def tell(self, workflow: Workflow) -> None:
        """See `ports.Newsroom`."""
        for news in self._waiting.get((workflow.scope, workflow.workflow_id), ()):
            news.ring(workflow)

    def is_awaited(self, scope: Scope, workflow_id: str) -> bool:
        """Whether somebody waits for this workflow."""
        return (scope, UUID(workflow_id)) in self._waiting

    async def hear(self, message: WorkflowFinished | ApprovalRequested) -> None:
        """Wake whoever waits for this workflow."""
        for news in self._waiting.get((message.scope, message.workflow_id), ()):
            news.ring(None)

    def close(self) -> None:
        """Let nobody wait any longer."""
        self.closed = True
        for waiting in self._waiting.values():
            for news in waiting:
                news.ring(None)
