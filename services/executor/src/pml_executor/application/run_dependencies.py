"""What handles runs."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pml_common.contracts.executor import RunWorkflow
from pml_common.contracts.grant import Grant
from pml_common.outages import Outage, no_outages
from pml_executor.domain.deadline import Moment, RunTime, run_time
from pml_executor.domain.journal import RunJournal
from pml_executor.domain.limits import RunLimits
from pml_executor.ports import Clock, OpenJournal, SandboxPool, Tools


@dataclass(frozen=True)
class RunDependencies:
    """Everything a run is made with; `is_signed` tells whether a gateway has signed a grant as it
    is. `outages` are the bus's, in seconds of the `monotonic` clock."""

    pool: SandboxPool
    open_journal: OpenJournal
    tools: Tools
    now: Clock
    limits: RunLimits
    is_signed: Callable[[Grant], bool]
    outages: Callable[[], Sequence[Outage]] = no_outages
    monotonic: Callable[[], float] = time.monotonic

    def time_of(self, command: RunWorkflow, journal: RunJournal) -> RunTime:
        """The time of a run from now on."""
        now = Moment(self.now(), *self._look())
        return run_time(command, journal, now, self.limits.max_outage_s, self._look)

    def _look(self) -> tuple[float, Sequence[Outage]]:
        return self.monotonic(), self.outages()
