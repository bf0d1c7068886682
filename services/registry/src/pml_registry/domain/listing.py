"""A capability's statistics and whether it is listed (C2)."""

from dataclasses import dataclass
from typing import Literal

from pml_common.contracts.learner import LearningUpdated


@dataclass(frozen=True)
class StoredCapability:
    """What is stored of a capability and may change; `learning_revision` is 0 before the first
    lesson."""

    name: str
    named: bool
    listed: bool
    description: str
    tools_used: tuple[str, ...]
    learning_revision: int = 0


@dataclass(frozen=True)
class Listing:
    """What a lesson makes of a capability."""

    listed: bool
    change: Literal["listed", "learned"]


def listing(held: StoredCapability, updated: LearningUpdated) -> Listing | None:
    """How the capability stands after a lesson; None when a newer one is known already.

    A capability is listed from its first success on.
    """
    if updated.revision <= held.learning_revision:
        return None
    listed = held.listed or updated.usage.success_count > 0
    newly = listed and not held.listed
    return Listing(listed=listed, change="listed" if newly else "learned")
