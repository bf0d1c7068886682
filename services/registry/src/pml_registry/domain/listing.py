"""A capability's statistics and whether it is listed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from pml_common.contracts.capability import Health
from pml_common.contracts.learner import LearningUpdated
from pml_common.contracts.scope import Scope
from pml_registry.domain.health import health_of

ScopedCapability = tuple[Scope, UUID]
"""A capability's scope and id."""


@dataclass(frozen=True)
class StoredCapability:
    """The mutable fields of a stored capability; `learning_revision` is 0 before the first
    update. `makes_calls`: of tools or capabilities; `is_variant`: it differs by literals alone from
    one that is offered."""

    name: str
    named: bool
    listed: bool
    learning_revision: int = 0
    makes_calls: bool = True
    is_variant: bool = False
    health: Health = "unproven"

    @property
    def is_junk(self) -> bool:
        """Whether it is of no use to others: kept, and offered under a given name only."""
        return self.is_variant or not self.makes_calls


@dataclass(frozen=True)
class Listing:
    """A capability's listing and health after a learning update, and whether the health is
    another than before."""

    listed: bool
    change: Literal["listed", "learned"]
    health: Health = "unproven"
    is_new_health: bool = False


def listing(stored: StoredCapability, updated: LearningUpdated) -> Listing | None:
    """Compute the listing after an update; None when a newer one is already stored.

    A capability is listed from its first success on, unless it is junk. What is listed stays so.
    """
    if updated.revision <= stored.learning_revision:
        return None
    has_succeeded = updated.usage.success_count > 0
    listed = stored.listed or (has_succeeded and not stored.is_junk)
    newly = listed and not stored.listed
    health = health_of(updated.usage)
    return Listing(
        listed=listed,
        change="listed" if newly else "learned",
        health=health,
        is_new_health=health != stored.health,
    )


def first_intents(updates: Iterable[LearningUpdated]) -> Mapping[ScopedCapability, str]:
    """Return the intent of the first run that succeeded and had one, by capability."""
    intents: dict[ScopedCapability, str] = {}
    for update in sorted(updates, key=lambda update: update.revision):
        intent = (update.intent or "").strip()
        if intent:
            intents.setdefault((update.scope, update.capability_id), intent)
    return intents


def newest_of_each(updates: Iterable[LearningUpdated]) -> Sequence[LearningUpdated]:
    """Return the update of each capability that includes the others."""
    newest: dict[ScopedCapability, LearningUpdated] = {}
    for update in sorted(updates, key=lambda update: update.revision):
        newest[update.scope, update.capability_id] = update
    return list(newest.values())
