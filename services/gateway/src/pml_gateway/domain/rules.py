"""What holds for every workflow of a gateway."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True)
class Rules:
    """What holds for every workflow.

    A grant outlives the time its run may take by `grant_slack`: queues and crashes take theirs.
    What stands still for `patience` longer than it should is asked for again, until `grant_slack`
    has passed: then it failed.
    """

    secret: bytes
    approval_ttl: timedelta = timedelta(hours=1)
    grant_slack: timedelta = timedelta(hours=1)
    patience: timedelta = timedelta(minutes=1)
