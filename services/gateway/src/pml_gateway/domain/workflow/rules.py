"""What holds for every workflow of a gateway."""

from dataclasses import dataclass
from datetime import timedelta

from pml_common.signing import SigningKey


@dataclass(frozen=True)
class Rules:
    """What holds for every workflow.

    Grants are signed with `key`. They outlive the time that a run may take by `grant_slack`: queues
    and crashes take theirs. What stands still for `patience` longer than it should is asked for
    again, until `grant_slack` has passed: then it failed.
    """

    key: SigningKey
    approval_ttl: timedelta = timedelta(hours=1)
    grant_slack: timedelta = timedelta(hours=1)
    patience: timedelta = timedelta(minutes=1)
