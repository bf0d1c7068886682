"""Calls of an attempt that wait for approval, and the bounded wait for its program's messages."""

import asyncio
import math
from dataclasses import dataclass, field

from pml_common.contracts.executor import RunWorkflow, WantedCall
from pml_executor.domain.endings import RunEnded
from pml_executor.domain.journal import Call, RunJournal, not_reached
from pml_executor.domain.parking import Parking, wanted_call
from pml_executor.domain.protocol import CallMade, ProgramMessage
from pml_executor.domain.refusal import refused_in_dry_run
from pml_executor.ports import Sandbox

_PAUSE_S = 1.0
"""Longest silence of a program with a pending call before it reports that it has paused."""
_MAX_PAUSE_S = 10.0
"""Longest time in which such a program may go on sending messages."""


@dataclass
class PendingCalls:
    """The calls of one attempt that wait for approval, and the deadline by which it parks."""

    command: RunWorkflow
    journal: RunJournal
    sandbox: Sandbox
    wanted: list[WantedCall] = field(default_factory=list[WantedCall])

    def __post_init__(self) -> None:
        self._parks_by = math.inf
        self._receive_timeout: asyncio.Timeout | None = None

    def add(self, call: Call, made: CallMade, why: str) -> None:
        """Park the run at this call, once the program has reported its other calls of this moment.
        Raises RunEnded in a dry run, which cannot wait for approval."""
        refused = refused_in_dry_run(self.command, call, why)
        if refused is not None:
            raise RunEnded(refused)
        self.wanted.append(wanted_call(self.command, call, made, why))
        if len(self.wanted) > 1:
            return
        now = asyncio.get_running_loop().time()
        self._parks_by = now + _MAX_PAUSE_S
        timeout = self._receive_timeout
        if timeout is not None and not timeout.expired():
            timeout.reschedule(min(timeout.when() or math.inf, now + _PAUSE_S))
        self.sandbox.pause()

    async def receive(self) -> ProgramMessage:
        """Return the program's next message; the wait for a recorded entry of a replay is bounded.
        Raises Parking, Diverged, SandboxBroken."""
        awaited, now = self.journal.awaited(), asyncio.get_running_loop().time()
        if now >= self._parks_by:
            raise Parking(self.wanted)
        bounds = [now + _PAUSE_S, self._parks_by] if self.wanted else []
        bounds += [] if awaited is None else [now + awaited[1] / 1000]
        self._receive_timeout = timeout = asyncio.timeout_at(min(bounds, default=None))
        try:
            async with timeout:
                return await self.sandbox.receive()
        except TimeoutError:
            if not timeout.expired():
                raise
            if self.wanted or awaited is None:
                raise Parking(self.wanted) from None
            raise not_reached(awaited[0]) from None
        finally:
            self._receive_timeout = None
