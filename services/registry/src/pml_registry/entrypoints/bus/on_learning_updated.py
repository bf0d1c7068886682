"""Handles `learning-updated`."""

from collections.abc import Sequence
from functools import partial

from pml_common.bus.errors import Retryable
from pml_common.contracts import catalog, ids
from pml_common.contracts.base import Message
from pml_common.contracts.learner import LearningUpdated
from pml_common.contracts.registry import CapabilityChanged
from pml_registry.domain.listing import StoredCapability, listing
from pml_registry.ports import CapabilityStore, LearningOutcome

_CONSUMER = catalog.REGISTRY_ON_LEARNING_UPDATED.durable


async def on_learning_updated(
    updated: LearningUpdated, capabilities: CapabilityStore
) -> Sequence[Message]:
    """Store the newest revision in any order of delivery; list the capability at its first success.

    Raises Retryable while the capability does not exist.
    """
    messages = await capabilities.apply_learning(updated, _CONSUMER, partial(_outcome, updated))
    if messages is None:
        raise Retryable(f"capability {updated.capability_id} does not exist yet")
    return messages


def _outcome(updated: LearningUpdated, stored: StoredCapability) -> LearningOutcome:
    after = listing(stored, updated)
    if after is None:
        return None
    changed = CapabilityChanged(
        scope=updated.scope,
        event_id=ids.effect_id(updated.event_id, "capability-changed"),
        capability_id=updated.capability_id,
        name=stored.name,
        change=after.change,
    )
    return after, [changed]
