"""Reports of progress to callers who asked for them."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from uuid import UUID

from pml_common.bus.errors import BusError
from pml_common.contracts.base import Message
from pml_common.contracts.scope import Scope
from pml_gateway.domain.workflow.progress import calls_of, reached_in
from pml_gateway.domain.workflow.workflow import Workflow
from pml_gateway.ports import CallerSide, Report

log = logging.getLogger(__name__)

_FOLLOWED_WITHIN_S = 1.0

Follow = Callable[[Scope, str], AbstractAsyncContextManager[AsyncIterator[Message]]]
"""Follows the events about an entity."""


@dataclass
class Reached:
    """The calls of a program that its run has reached, reported as they are."""

    report: Report | None
    _calls: Mapping[str, str] = field(default_factory=dict[str, str])
    _ids: dict[str, None] = field(default_factory=dict[str, None])

    async def begin(self, workflow: Workflow) -> None:
        """Take the calls of an analysed program; those that were reached before are counted."""
        if self.report is None or workflow.analysis is None:
            return
        self._calls = calls_of(workflow)
        await self._tell("analysed")

    async def hear(self, message: Message) -> None:
        """Count the calls that a message tells of."""
        new = [node for node in reached_in(message) if node not in self._ids]
        self._ids |= dict.fromkeys(new)
        own = [node for node in new if node in self._calls]
        if own:
            await self._tell(f"{self._calls[own[-1]]} ({own[-1]})")

    async def _tell(self, latest: str) -> None:
        done, total = len(self._ids.keys() & self._calls.keys()), len(self._calls)
        if self.report is not None:
            await self.report(done, total, f"{done} of {total} calls reached: {latest}")


@dataclass(frozen=True)
class ProgressReports:
    """Reports on runs, whichever process carries them out."""

    follow: Follow

    @asynccontextmanager
    async def of(
        self, side: CallerSide, scope: Scope, workflow_id: UUID
    ) -> AsyncGenerator[Reached]:
        """Report on a workflow's run until the context exits, if its caller wants that."""
        reached = Reached(side.report)
        if side.report is None:
            yield reached
            return
        entered = asyncio.Event()
        following = asyncio.create_task(self._hear(reached, scope, workflow_id, entered))
        try:
            async with asyncio.timeout(_FOLLOWED_WITHIN_S):
                await entered.wait()
        except TimeoutError:
            log.info("the progress of %s is not followed yet", workflow_id)
        try:
            yield reached
        finally:
            following.cancel()

    async def _hear(
        self, reached: Reached, scope: Scope, workflow_id: UUID, entered: asyncio.Event
    ) -> None:
        try:
            async with self.follow(scope, str(workflow_id)) as live:
                entered.set()
                async for message in live:
                    await reached.hear(message)
        except BusError as error:
            log.info("the progress of %s is not followed: %s", workflow_id, error)
        finally:
            entered.set()
