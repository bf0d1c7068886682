"""What handles runs."""

from dataclasses import dataclass

from pml_executor.domain.limits import RunLimits
from pml_executor.ports import Clock, OpenJournal, SandboxPool, Tools


@dataclass(frozen=True)
class Executor:
    """Everything a run is made with."""

    pool: SandboxPool
    open_journal: OpenJournal
    tools: Tools
    now: Clock
    limits: RunLimits
