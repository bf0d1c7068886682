"""Checks of versions before their code leaves the registry to be run."""

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from uuid import UUID

from typing_extensions import override

from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.base import Message
from pml_common.contracts.caching import CacheSettings
from pml_common.contracts.capability import CapabilityRecord
from pml_common.contracts.learner import LearningUpdated
from pml_common.contracts.registry import CapabilityPage, ListCapabilities
from pml_common.contracts.scope import Scope
from pml_common.telemetry import metrics
from pml_common.telemetry.instruments import Sum
from pml_registry.domain.listing import ScopedCapability, StoredCapability
from pml_registry.domain.signatures import Fault, StoredVersion, explain, version_in
from pml_registry.domain.versions import Version
from pml_registry.domain.visibility import Viewer
from pml_registry.ports import (
    BehaviourTexts,
    CapabilityLookup,
    CapabilityStore,
    CapabilityTransaction,
    Described,
    FoundBy,
    LearningOutcome,
    VersionRefused,
    VersionSigning,
)

log = logging.getLogger(__name__)

_refused = Sum(metrics.VERSIONS_REFUSED)


@dataclass
class VersionChecks:
    """Checks signatures. A version is verified if its last `runs` runs succeeded, too. While
    `accepts_unsigned`, a version without a signature passes."""

    signing: VersionSigning
    runs: int
    accepts_unsigned: bool = False

    def is_verified(self, version: StoredVersion, success_streak: int) -> bool:
        """Return whether a version that passes is signed and its last runs succeeded."""
        return version.signature is not None and success_streak >= self.runs

    def refusal(self, version: StoredVersion) -> str | None:
        """Return why a version must not run; it is logged and counted then."""
        fault = self._fault(version)
        if fault is None:
            return None
        why = explain(fault, version)
        log.error(why)
        _refused.add(1, fault)
        return why

    def _fault(self, version: StoredVersion) -> Fault | None:
        if version.signature is None:
            return None if self.accepts_unsigned else "unsigned"
        is_signed = self.signing.is_signed(version.statement, version.signature)
        return None if is_signed else "not_as_signed"


class CheckedCapabilities(CapabilityStore):
    """A store whose capabilities are checked when they are read."""

    def __init__(self, stored: CapabilityStore, checks: VersionChecks) -> None:
        self._stored = stored
        self._checks = checks

    @override
    async def at(
        self, viewer: Viewer, scope: Scope, record_id: UUID, number: int
    ) -> CapabilityRecord:
        """Raises VersionRefused."""
        return self._checked(await self._stored.at(viewer, scope, record_id, number))

    @override
    async def describe(self, viewer: Viewer, references: Sequence[str]) -> Mapping[str, Described]:
        found = await self._stored.describe(viewer, references)
        return {reference: self._described(each) for reference, each in found.items()}

    @override
    async def page(self, query: ListCapabilities) -> CapabilityPage:
        """Those that must not run are listed, and not verified."""
        page = await self._stored.page(query)
        shown = tuple(self._shown(each) for each in page.capabilities)
        return page.model_copy(update={"capabilities": shown})

    def _checked(self, record: CapabilityRecord) -> CapabilityRecord:
        version = version_in(record)
        why = self._checks.refusal(version)
        if why is not None:
            raise VersionRefused(f"{record.name}: {why}")
        return self._verified(record, version)

    def _shown(self, record: CapabilityRecord) -> CapabilityRecord:
        version = version_in(record)
        return record if self._checks.refusal(version) else self._verified(record, version)

    def _verified(self, record: CapabilityRecord, version: StoredVersion) -> CapabilityRecord:
        verified = self._checks.is_verified(version, record.usage.success_streak)
        return record.model_copy(update={"verified": verified})

    def _described(self, found: Described) -> Described:
        why = self._checks.refusal(found.version)
        verified = why is None and self._checks.is_verified(
            found.version, found.usage.success_streak
        )
        description = found.description.model_copy(update={"verified": verified})
        return replace(found, description=description, refused=why)

    # Passed on unchecked: none of these returns code.

    @override
    def once(
        self, scope: Scope, message_id: UUID, consumer: str
    ) -> AbstractAsyncContextManager[CapabilityTransaction]:
        return self._stored.once(scope, message_id, consumer)

    @override
    async def look_up(
        self, analyses: Sequence[ExecutionAnalyzed], consumer: str
    ) -> Sequence[CapabilityLookup]:
        return await self._stored.look_up(analyses, consumer)

    @override
    async def apply_learning(
        self,
        updates: Sequence[LearningUpdated],
        consumer: str,
        learn: Callable[[LearningUpdated, StoredCapability], LearningOutcome],
    ) -> Mapping[UUID, Sequence[Message] | None]:
        return await self._stored.apply_learning(updates, consumer, learn)

    @override
    async def undescribed(
        self, capabilities: Sequence[ScopedCapability]
    ) -> Mapping[ScopedCapability, BehaviourTexts]:
        return await self._stored.undescribed(capabilities)

    @override
    async def describe_first(
        self, scope: Scope, capability_id: UUID, name: str, found_by: FoundBy
    ) -> None:
        await self._stored.describe_first(scope, capability_id, name, found_by)

    @override
    async def versions(self, viewer: Viewer, scope: Scope, record_id: UUID) -> Sequence[Version]:
        return await self._stored.versions(viewer, scope, record_id)

    @override
    async def set_cache(self, scope: Scope, record_id: UUID, cache: CacheSettings) -> None:
        await self._stored.set_cache(scope, record_id, cache)

    @override
    async def names(self, viewer: Viewer) -> Sequence[str]:
        return await self._stored.names(viewer)
