"""Calls the capability handlers as the bus would, on one kind of store."""

from collections.abc import Mapping, Sequence

from pml_common.bus.port import Handled
from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.base import Message
from pml_common.contracts.caching import CacheSettings
from pml_common.contracts.capability import CapabilityRecord
from pml_common.contracts.learner import LearningUpdated
from pml_common.contracts.registry import (
    CapabilityChanged,
    DescribeCapabilities,
    ListCapabilities,
    Reference,
    ResolveCapability,
    SetCachePolicy,
)
from pml_common.contracts.scope import Scope
from pml_registry.entrypoints.bus.on_describe_capabilities import on_describe_capabilities
from pml_registry.entrypoints.bus.on_execution_analyzed import on_execution_analyzed
from pml_registry.entrypoints.bus.on_learning_updated import on_learning_updated
from pml_registry.entrypoints.bus.on_list_capabilities import on_list_capabilities
from pml_registry.entrypoints.bus.on_resolve_capability import on_resolve_capability
from pml_registry.entrypoints.bus.on_set_cache_policy import on_set_cache_policy
from pml_registry.ports import Embedder
from services.registry.tests.support.builders import SCOPE, TrustedHashes
from services.registry.tests.support.stores import Stores


class StoreDriver:
    """Handles events and queries."""

    def __init__(self, stores: Stores, embedder: Embedder) -> None:
        self._stores = stores
        self._embedder = embedder

    async def analysed(self, *analyses: ExecutionAnalyzed) -> Sequence[Message]:
        """Handle a batch; return what is published. Raises the first error of one of them."""
        handled = await on_execution_analyzed(
            analyses, self._stores.capabilities, self._embedder, TrustedHashes()
        )
        return published(handled, analyses)

    async def learned(self, *updates: LearningUpdated) -> Sequence[Message]:
        """Handle a batch; return what is published. Raises the first error of one of them."""
        return published(await on_learning_updated(updates, self._stores.capabilities), updates)

    async def resolve(self, reference: str, scope: Scope = SCOPE) -> CapabilityRecord:
        query = ResolveCapability(scope=scope, reference=reference)
        return await on_resolve_capability(query, self._stores.capabilities)

    async def set_cache(
        self, reference: str, chosen: Mapping[str, object], scope: Scope = SCOPE
    ) -> CapabilityRecord:
        query = SetCachePolicy(
            scope=scope, reference=reference, cache=CacheSettings.model_validate(chosen)
        )
        return await on_set_cache_policy(query, self._stores.capabilities, self._stores.tools)

    async def describe(self, *references: str, scope: Scope = SCOPE) -> Sequence[Reference]:
        query = DescribeCapabilities(scope=scope, references=references)
        answer = await on_describe_capabilities(query, self._stores.capabilities)
        return answer.references

    async def resolved_name(self, reference: str, scope: Scope = SCOPE) -> str | None:
        """The name of the capability that a reference in a program resolves to."""
        (answer,) = await self.describe(reference, scope=scope)
        return answer.capability.name if answer.capability else None

    async def names(self, *, unlisted: bool = True, scope: Scope = SCOPE) -> list[str]:
        query = ListCapabilities(scope=scope, include_unlisted=unlisted)
        page = await on_list_capabilities(query, self._stores.capabilities)
        return [record.name for record in page.capabilities]


def published(handled: Handled, batch: Sequence[Message]) -> Sequence[Message]:
    """Return what is published after a batch, in its order. Raises the first error in it."""
    for error in handled.failed.values():
        raise error
    return [fact for each in batch for fact in handled.facts.get(each.message_id, ())]


def changes(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """Published names and changes."""
    return [(each.name, each.change) for each in messages if isinstance(each, CapabilityChanged)]
