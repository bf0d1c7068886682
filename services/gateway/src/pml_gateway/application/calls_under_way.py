"""Calls that this process is beginning or making, by their runs."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import UUID

from pml_common.contracts.executor import RunFinished
from pml_common.contracts.gateway import CallTool, WorkflowFinished
from pml_common.contracts.scope import Scope


@dataclass(eq=False)
class UnderWay:
    """A call of the run, or the direct call, `of` that is being begun or made; `ended` if that has
    ended meanwhile."""

    of: tuple[Scope, UUID]
    ended: bool = False
    limit: asyncio.Timeout | None = None

    def cancel(self) -> None:
        """Note the end of the run, and cancel the call where it is being made."""
        self.ended = True
        if self.limit is not None and not self.limit.expired():
            self.limit.reschedule(asyncio.get_running_loop().time())


class CallsUnderWay:
    """The calls of this process that have no outcome yet."""

    def __init__(self) -> None:
        self._calls: set[UnderWay] = set()

    @contextmanager
    def entered(self, call: CallTool) -> Generator[UnderWay]:
        """Count the call as under way inside the block."""
        under_way = UnderWay((call.scope, call.workflow_id))
        self._calls.add(under_way)
        try:
            yield under_way
        finally:
            self._calls.discard(under_way)

    def has_of(self, scope: Scope, workflow_id: str) -> bool:
        """Whether this process is making a call of this run."""
        return any(call.of == (scope, UUID(workflow_id)) for call in self._calls)

    def cancel_of(self, end: RunFinished | WorkflowFinished) -> None:
        """Cancel the calls that an ended run still makes; their outcomes become `unknown`."""
        ended = end.scope, end.workflow_id
        for call in self._calls:
            if call.of == ended:
                call.cancel()
