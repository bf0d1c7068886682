"""Handles `learning-updated`."""

from collections.abc import Sequence
from dataclasses import replace

from pml_common.bus.errors import Retryable
from pml_common.bus.port import Handled
from pml_common.contracts import catalog, ids
from pml_common.contracts.learner import LearningUpdated
from pml_common.contracts.registry import CapabilityChanged
from pml_registry.application.described import found_by
from pml_registry.domain.listing import StoredCapability, first_intents, listing
from pml_registry.ports import CapabilityStore, LearningOutcome
from pml_registry.ports.vectors import Embedder

_CONSUMER = catalog.REGISTRY_ON_LEARNING_UPDATED.durable


async def on_learning_updated(
    updates: Sequence[LearningUpdated], capabilities: CapabilityStore, embedder: Embedder
) -> Handled:
    """Store each capability's newest revision in any order of delivery; list it at its first
    success. One without a description has had it by then, from a run that succeeded. Updates of a
    capability that does not exist yet fail as Retryable."""
    await _describe(updates, capabilities, embedder)
    facts = await capabilities.apply_learning(updates, _CONSUMER, _outcome)
    missing = {
        update.event_id: Retryable(f"capability {update.capability_id} does not exist yet")
        for update in updates
        if facts[update.event_id] is None
    }
    return Handled({cause: said for cause, said in facts.items() if said}, missing)


async def _describe(
    updates: Sequence[LearningUpdated], capabilities: CapabilityStore, embedder: Embedder
) -> None:
    """Describe what nothing describes. A repetition finds it described."""
    intents = first_intents(updates)
    if not intents:
        return
    for (scope, capability_id), texts in (await capabilities.undescribed([*intents])).items():
        texts = replace(texts, description=intents[scope, capability_id])
        found = await found_by(texts.name, texts, embedder)
        await capabilities.describe_first(scope, capability_id, texts.name, found)


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
        health=after.health if after.is_new_health else None,
    )
    return after, [changed]
