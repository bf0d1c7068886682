"""What handles runs."""

from collections.abc import Callable
from dataclasses import dataclass

from pml_common.contracts.grant import Grant
from pml_executor.domain.limits import RunLimits
from pml_executor.ports import Clock, OpenJournal, SandboxPool, Tools


@dataclass(frozen=True)
class Executor:
    """Everything a run is made with; `is_signed` tells whether a gateway has signed a grant as it
    is."""

    pool: SandboxPool
    open_journal: OpenJournal
    tools: Tools
    now: Clock
    limits: RunLimits
    is_signed: Callable[[Grant], bool]
