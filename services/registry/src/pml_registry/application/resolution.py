"""Meanings of references: a record, near or far, and one of its versions."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from pml_common.bus.errors import QueryFailed
from pml_common.contracts.caching import CachePolicy
from pml_common.contracts.capability import CapabilityRecord
from pml_common.contracts.display_names import BadName
from pml_common.contracts.references import Fqdn, Latest, ScopedName, Selector, parse_reference
from pml_registry.domain.health import failing_notice
from pml_registry.domain.names import similar_names
from pml_registry.domain.versions import NoVersion, select
from pml_registry.domain.visibility import Viewer
from pml_registry.ports import CapabilityStore, VersionRefused
from pml_registry.ports.records import Located, RecordStore, Target

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Meant:
    """The meaning of a reference to a viewer: a record at a version."""

    located: Located
    record: CapabilityRecord


@dataclass(frozen=True)
class Resolution:
    """Resolves references for viewers: their own project first, then their organisation, then what
    is public."""

    records: RecordStore
    capabilities: CapabilityStore

    async def resolve(self, viewer: Viewer, reference: str) -> Meant:
        """Return the record, with notices about what a caller should change. Raises QueryFailed:
        `not_found` with similar names or the versions there are, `invalid` for a text that is no
        reference, `conflict` for a version that is not what was signed."""
        target, selector = self._parse(reference)
        located = await self.records.locate(viewer, target)
        if located is None:
            raise QueryFailed("not_found", await self._not_found(viewer, reference, target))
        return await self._at(viewer, target, located, selector)

    async def called(self, viewer: Viewer, name: str) -> Meant | None:
        """Return the nearest record that other scopes share under a callable name. Raises
        QueryFailed `conflict` as `resolve`."""
        located = await self.records.locate(viewer, name)
        return None if located is None else await self._at(viewer, name, located, Latest())

    async def adopt(self, viewer: Viewer, meant: Meant) -> UUID:
        """Have another scope's behaviour in the viewer's, where it runs and is learned of; return
        its id there. Raises QueryFailed `conflict` for code that is not what its hash says."""
        origin = f"{meant.record.fqdn}@{meant.record.version}"
        try:
            return await self.records.adopt(meant.located, viewer, origin)
        except VersionRefused as error:
            raise QueryFailed("conflict", str(error)) from error

    def _parse(self, reference: str) -> tuple[Target, Selector]:
        try:
            parsed = parse_reference(reference)
        except BadName as error:
            raise QueryFailed("invalid", str(error)) from error
        return parsed.target, parsed.selector

    async def _at(
        self, viewer: Viewer, target: Target | str, located: Located, selector: Selector
    ) -> Meant:
        if selector != Latest():
            versions = await self.capabilities.versions(viewer, located.scope, located.record_id)
            try:
                chosen = select(versions, selector).version
            except NoVersion as error:
                raise QueryFailed("not_found", f"{target}{error}") from error
            located = replace(located, version=chosen.number)
        version = located.record_id, located.version
        try:
            record = await self.capabilities.at(viewer, located.scope, *version)
        except VersionRefused as error:
            raise QueryFailed("conflict", str(error)) from error
        if located.place != "project" and record.last_good is not None:
            _, _, number = record.last_good.rpartition("@")
            record = record.model_copy(update={"last_good": f"{record.fqdn}@{number}"})
        notices = _notices(target, record)
        for notice in notices:
            log.warning("%s: %s", viewer.scope, notice)
        # Results of other scopes' capabilities are not cached: the setting is their owner's.
        cache = record.cache if located.place == "project" else CachePolicy()
        record = record.model_copy(update={"notices": notices, "cache": cache})
        return Meant(located, record)

    async def _not_found(self, viewer: Viewer, reference: str, target: Target) -> str:
        reason = f"no capability {reference!r} in {viewer.scope}"
        if isinstance(target, UUID):
            return reason
        near = similar_names(str(target), await self.capabilities.names(viewer))
        return f"{reason}; did you mean {' or '.join(near)}?" if near else reason


def _notices(target: Target | str, record: CapabilityRecord) -> Sequence[str]:
    notices: list[str] = []
    name = str(target.name if isinstance(target, ScopedName | Fqdn) else target)
    if name in record.aliases:
        notices.append(f"{name} was renamed to {record.name}; use the new name")
    if record.yanked_reason is not None:
        yanked = f"version {record.version} is yanked: {record.yanked_reason}"
        notices.append(f"{record.name}: {yanked}")
    failing = failing_notice(record)
    notices += [] if failing is None else [failing]
    return tuple(notices)
