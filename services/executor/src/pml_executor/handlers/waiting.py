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
"""How long a program that keeps its thread busy has to tell what else it calls."""


@dataclass
class Waiting:
    """The calls of one attempt that wait for a person, and how long the program may go on."""

    command: RunWorkflow
    journal: RunJournal
    sandbox: Sandbox
    wanted: list[WantedCall] = field(default_factory=list[WantedCall])

    def __post_init__(self) -> None:
        self._parks_at = math.inf
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
        self._parks_at = asyncio.get_running_loop().time() + _PAUSE_S
        if self._patience is not None and not self._patience.expired():
            self._patience.reschedule(min(self._patience.when() or math.inf, self._parks_at))
        self.sandbox.pause()

    async def receive(self) -> ProgramMessage:
        """The program's next message; a replay waits only so long for what must come. Raises
        Parking, Diverged, SandboxBroken."""
        awaited, now = self.journal.awaited(), asyncio.get_running_loop().time()
        if now >= self._parks_at:
            raise Parking(self.wanted)
        until = math.inf if awaited is None else now + awaited[1] / 1000
        bound = min(until, self._parks_at)
        self._patience = patience = asyncio.timeout_at(None if bound == math.inf else bound)
        try:
            async with patience:
                return await self.sandbox.receive()
        except TimeoutError:
            if not patience.expired():
                raise
            if awaited is None or self._parks_at < until:
                raise Parking(self.wanted) from None
            raise left_out(awaited[0]) from None
        finally:
            self._patience = None
