"""Dependencies of the handlers of runs."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pml_common.contracts.executor import RunWorkflow
from pml_common.contracts.grant import Grant
from pml_common.outages import Outage, no_outages
from pml_executor.domain.deadline import ClockReading, RunTime, run_time
from pml_executor.domain.journal import RunJournal
from pml_executor.domain.limits import RunLimits
from pml_executor.ports import Clock, OpenJournal, SandboxPool, Tools


@dataclass(frozen=True)
class RunDependencies:
    """Ports, clocks and limits of runs. `is_signed` checks a gateway's signature of a grant;
    `outages` are the bus's, in seconds of the `monotonic` clock."""

    pool: SandboxPool
    open_journal: OpenJournal
    tools: Tools
    now: Clock
    limits: RunLimits
    is_signed: Callable[[Grant], bool]
    outages: Callable[[], Sequence[Outage]] = no_outages
    monotonic: Callable[[], float] = time.monotonic

    def time_of(self, command: RunWorkflow, journal: RunJournal) -> RunTime:
        """Return the time account of a run that this executor starts or takes over now."""
        now = ClockReading(self.now(), *self._read_clock())
        return run_time(command, journal, now, self.limits.max_outage_s, self._read_clock)

    def _read_clock(self) -> tuple[float, Sequence[Outage]]:
        return self.monotonic(), self.outages()
