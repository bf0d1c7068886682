"""A capability was learned from: keep its newest statistics."""

from collections.abc import Sequence
from functools import partial

from pml_common.bus.errors import Retryable
from pml_common.contracts import catalog, ids
from pml_common.contracts.base import Message
from pml_common.contracts.learner import LearningUpdated
from pml_common.contracts.registry import CapabilityChanged
from pml_registry.domain.listing import StoredCapability, listing
from pml_registry.ports import CapabilityStore, Taught

_CONSUMER = catalog.REGISTRY_ON_LEARNING_UPDATED.durable


async def on_learning_updated(
    updated: LearningUpdated, capabilities: CapabilityStore
) -> Sequence[Message]:
    """Keep the newest revision, whatever the order; list the capability at its first success.

    Raises Retryable while the capability is not known yet.
    """
    facts = await capabilities.learn_once(updated, _CONSUMER, partial(_taught, updated))
    if facts is None:
        raise Retryable(f"capability {updated.capability_id} is not known yet")
    return facts


def _taught(updated: LearningUpdated, held: StoredCapability) -> Taught:
    standing = listing(held, updated)
    if standing is None:
        return None
    changed = CapabilityChanged(
        scope=updated.scope,
        event_id=ids.effect_id(updated.event_id, "capability-changed"),
        capability_id=updated.capability_id,
        name=held.name,
        change=standing.change,
    )
    return standing, [changed]
