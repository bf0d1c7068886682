"""Handles `learning-updated`."""

from collections.abc import Sequence
from uuid import UUID

from pml_common.bus.errors import Retryable
from pml_common.bus.port import Handled
from pml_common.contracts import catalog, ids
from pml_common.contracts.base import Message
from pml_common.contracts.learner import LearningUpdated
from pml_common.contracts.registry import CapabilityChanged
from pml_registry.domain.listing import Listing, StoredCapability, listing, newest_of_each
from pml_registry.ports import CapabilityStore

_CONSUMER = catalog.REGISTRY_ON_LEARNING_UPDATED.durable


async def on_learning_updated(
    updates: Sequence[LearningUpdated], capabilities: CapabilityStore
) -> Handled:
    """Store each capability's newest revision in any order of delivery; list it at its first
    success. Updates of a capability that does not exist yet fail as Retryable."""
    async with capabilities.learning([each.event_id for each in updates], _CONSUMER) as batch:
        new = [each for each in updates if each.event_id not in batch.replayed]
        stored = await batch.capabilities({(each.scope, each.capability_id) for each in new})
        missing = {
            each.event_id: Retryable(f"capability {each.capability_id} does not exist yet")
            for each in new
            if (each.scope, each.capability_id) not in stored
        }
        learned: list[tuple[LearningUpdated, Listing]] = []
        facts: dict[UUID, Sequence[Message]] = {}
        for update in newest_of_each(each for each in new if each.event_id not in missing):
            before = stored[update.scope, update.capability_id]
            if (after := listing(before, update)) is not None:
                learned.append((update, after))
                facts[update.event_id] = [_changed(update, before, after)]
        await batch.learn(learned)
        return Handled(batch.conclude(facts, missing), missing)


def _changed(
    update: LearningUpdated, stored: StoredCapability, after: Listing
) -> CapabilityChanged:
    return CapabilityChanged(
        scope=update.scope,
        event_id=ids.effect_id(update.event_id, "capability-changed"),
        capability_id=update.capability_id,
        name=stored.name,
        change=after.change,
    )
