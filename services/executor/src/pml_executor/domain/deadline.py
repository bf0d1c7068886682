"""When a run began, and how long it may still go on."""

from pml_common.contracts.executor import RunWorkflow
from pml_executor.domain.journal import RunJournal
from pml_executor.domain.parking import parked_ms


def seconds_left(command: RunWorkflow, journal: RunJournal, now: float) -> float:
    """Until the deadline, which counts from the first executor's start."""
    return command.timeout_s - (now - began(journal)) / 1000


def began(journal: RunJournal) -> float:
    """When the run would have begun had it never been parked; Unix milliseconds."""
    return journal.entries[0].ts + parked_ms(journal.marks)
