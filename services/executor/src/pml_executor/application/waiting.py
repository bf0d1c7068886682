"""What an attempt waits for: its program's next message, and a person."""

import asyncio
import math
from dataclasses import dataclass, field

from pml_common.contracts.executor import RunWorkflow, WantedCall
from pml_executor.domain.endings import RunEnded
from pml_executor.domain.journal import Call, RunJournal, left_out
from pml_executor.domain.parking import Parking, wanted_call
from pml_executor.domain.protocol import CallMade, ProgramMessage
from pml_executor.domain.refusal import refused_unasked
from pml_executor.ports import Sandbox

_PAUSE_S = 1.0
"""How long a program of which a call waits may keep silent before it says that it has paused."""
_PAUSE_AT_MOST_S = 10.0
"""And how long it may go on telling what it does."""


@dataclass
class Waiting:
    """The calls of one attempt that wait for a person, and how long the program may go on."""

    command: RunWorkflow
    journal: RunJournal
    sandbox: Sandbox
    wanted: list[WantedCall] = field(default_factory=list[WantedCall])

    def __post_init__(self) -> None:
        self._parks_by = math.inf
        self._patience: asyncio.Timeout | None = None

    def add(self, call: Call, made: CallMade, why: str) -> None:
        """Have the run park at this call, once the program has told what else it calls at this
        moment. Raises RunEnded where nobody may be asked."""
        refused = refused_unasked(self.command, call, why)
        if refused is not None:
            raise RunEnded(refused)
        self.wanted.append(wanted_call(self.command, call, made, why))
        if len(self.wanted) > 1:
            return
        now = asyncio.get_running_loop().time()
        self._parks_by = now + _PAUSE_AT_MOST_S
        if self._patience is not None and not self._patience.expired():
            self._patience.reschedule(min(self._patience.when() or math.inf, now + _PAUSE_S))
        self.sandbox.pause()

    async def receive(self) -> ProgramMessage:
        """The program's next message; a replay waits only so long for what must come. Raises
        Parking, Diverged, SandboxBroken."""
        awaited, now = self.journal.awaited(), asyncio.get_running_loop().time()
        if now >= self._parks_by:
            raise Parking(self.wanted)
        bounds = [now + _PAUSE_S, self._parks_by] if self.wanted else []
        bounds += [] if awaited is None else [now + awaited[1] / 1000]
        self._patience = patience = asyncio.timeout_at(min(bounds, default=None))
        try:
            async with patience:
                return await self.sandbox.receive()
        except TimeoutError:
            if not patience.expired():
                raise
            if self.wanted or awaited is None:
                raise Parking(self.wanted) from None
            raise left_out(awaited[0]) from None
        finally:
            self._patience = None
