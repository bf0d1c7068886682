"""Where callers of this process wait for their workflows, whichever process finishes them."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from uuid import UUID

from pml_common.contracts.gateway import ApprovalRequested, WorkflowFinished
from pml_common.contracts.scope import Scope


class MemoryNews:
    """See `ports.News`."""

    def __init__(self, room: "MemoryNewsroom") -> None:
        self._room = room
        self.bell = asyncio.Event()

    async def heard(self, timeout_s: float) -> bool:
        """See `ports.News`."""
        try:
            async with asyncio.timeout(timeout_s):
                await self.bell.wait()
        except TimeoutError:
            pass
        self.bell.clear()
        return not self._room.closed


class MemoryNewsroom:
    """See `ports.Newsroom`; told what the bus tells every replica."""

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

    async def hear(self, message: WorkflowFinished | ApprovalRequested) -> None:
        """Wake whoever waits for this workflow."""
        for news in self._waiting.get((message.scope, message.workflow_id), ()):
            news.bell.set()

    def close(self) -> None:
        """Let nobody wait any longer."""
        self.closed = True
        for waiting in self._waiting.values():
            for news in waiting:
                news.bell.set()
