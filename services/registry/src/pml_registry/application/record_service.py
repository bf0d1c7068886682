"""Changes of records, and the messages about them."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from pml_common.bus.errors import BusError, QueryFailed
from pml_common.contracts.base import Message
from pml_common.contracts.capability import CapabilityRecord
from pml_common.contracts.display_names import BadName, parse_display_name
from pml_common.contracts.dns import Fork, Rename
from pml_common.contracts.references import Number
from pml_common.contracts.scope import Scope
from pml_registry.application.described import found_by
from pml_registry.application.resolution import Meant, Resolution
from pml_registry.domain.record_changes import Describe, FoundAs, OwnChange, Refused, change
from pml_registry.domain.visibility import Viewer
from pml_registry.ports import BehaviourTexts, FoundBy, VersionRefused
from pml_registry.ports.records import (
    ChangeRequest,
    ForkRequest,
    Made,
    MergeRequest,
    Outdated,
    RecordStore,
)
from pml_registry.ports.vectors import Embedder

log = logging.getLogger(__name__)

_MOST_AT_ONCE = 100
_MAX_ATTEMPTS = 5


@dataclass(frozen=True)
class RecordService:
    """Changes records, each change in one transaction and with one message."""

    records: RecordStore
    resolution: Resolution
    embedder: Embedder
    publish: Callable[[Message], Awaitable[object]]

    async def change(
        self, viewer: Viewer, request_id: UUID, reference: str, wanted: OwnChange | Fork
    ) -> tuple[Meant, bool]:
        """Make a change; return the record as it is then, a fork for a fork, and whether this
        request has changed it. Raises QueryFailed and StorageUnavailable."""
        # First of all: what the reference meant before the change, it may not mean after it.
        before = await self.records.made(viewer.scope, request_id)
        if before is not None:
            return await self.resolution.resolve(Viewer(viewer.scope), str(before)), True
        for _ in range(_MAX_ATTEMPTS):
            meant = await self.resolution.resolve(viewer, reference)
            made = await self._make(viewer, request_id, wanted, meant)
            if not isinstance(made, Outdated):
                scope = viewer.scope if isinstance(wanted, Fork) else meant.located.scope
                return await self._answer(scope, request_id, made)
        raise QueryFailed("conflict", f"{reference} is changed too often by others: try again")

    async def merge(
        self,
        viewer: Viewer,
        request_id: UUID,
        name: str,
        behaviour: UUID,
        merged_from: Sequence[str],
        description: str,
    ) -> tuple[Meant, bool]:
        """Name the stored program of a merge; return its record, and whether this request has named
        it. Raises QueryFailed and StorageUnavailable."""
        try:
            display_name = parse_display_name(name)
        except BadName as error:
            raise QueryFailed("invalid", str(error)) from error
        program = await self.resolution.resolve(Viewer(viewer.scope), str(behaviour))
        request = MergeRequest(
            request_id=request_id,
            viewer=viewer,
            name=display_name,
            behaviour=behaviour,
            merged_from=tuple(merged_from),
            found_by=await self._found_by(name, program.record, description),
        )
        made = await self.records.merge(request)
        return await self._answer(viewer.scope, request_id, made)

    async def _answer(
        self, scope: Scope, request_id: UUID, made: Made | Refused
    ) -> tuple[Meant, bool]:
        """Publish what was made, and read it. Raises QueryFailed."""
        if isinstance(made, Refused):
            raise QueryFailed(made.code, made.why)
        if made.event is not None:
            await self._say(scope, request_id, made.event)
        # As a service: after a transfer its former owner may see it no more.
        return await self.resolution.resolve(Viewer(scope), str(made.record_id)), made.changed

    async def publish_overdue(self) -> None:
        """Publish messages about changes whose process died before it did. Raises
        StorageUnavailable."""
        while overdue := await self.records.unpublished(_MOST_AT_ONCE):
            said: list[tuple[Scope, UUID]] = []
            for request_id, event in overdue:
                try:
                    await self.publish(event)
                except BusError as error:
                    log.warning("%s: a change is published later: %s", event.scope, error)
                    break
                said.append((event.scope, request_id))
            await self.records.mark_published(said)
            if len(said) < _MOST_AT_ONCE:
                return

    async def _make(
        self, viewer: Viewer, request_id: UUID, wanted: OwnChange | Fork, meant: Meant
    ) -> Made | Refused | Outdated:
        located = meant.located
        if isinstance(wanted, Fork | Rename) and _has_never_succeeded(meant.record):
            return Refused(
                "conflict",
                f"no run of {meant.record.name} has succeeded, so it gets no name: run it first",
            )
        if isinstance(wanted, Fork):
            try:
                name = parse_display_name(wanted.name)
            except BadName as error:
                return Refused("invalid", str(error))
            origin = f"{meant.record.fqdn}@{meant.record.version}"
            request = ForkRequest(request_id, viewer, name, origin)
            try:
                return await self.records.fork(located, request)
            except VersionRefused as error:
                return Refused("conflict", str(error))
        if located.place != "project":
            return Refused(
                "conflict",
                f"{meant.record.fqdn} belongs to {located.scope}: fork it to have one of your own",
            )
        name = wanted.name if isinstance(wanted, Rename) else None
        version = Number(meant.record.version)  # of an id, which is no selector, too
        # Embedding takes long, so it is done before the lock; the store compares what it was for.
        found_by, found_as = await self._as_found(wanted, meant)
        return await self.records.change(
            located.scope,
            located.record_id,
            ChangeRequest(request_id, viewer, name, found_by, found_as),
            lambda state, holder: change(state, wanted, version, viewer, holder),
        )

    async def _as_found(
        self, wanted: OwnChange, meant: Meant
    ) -> tuple[FoundBy, FoundAs] | tuple[None, None]:
        """Return what the version concerned is found by after the change, if that is different: a
        name is found by the latest, whichever the reference means."""
        match wanted:
            case Rename(name=name):
                of = str(meant.located.record_id)
                record = (await self.resolution.resolve(Viewer(meant.located.scope), of)).record
                description = record.description
            case Describe(description):
                record = meant.record
                name, description = record.name, description.strip()
            case _:
                return None, None
        found_by = await self._found_by(name, record, description)
        return found_by, FoundAs(record.capability_id, name, description)

    async def _found_by(self, name: str, record: CapabilityRecord, description: str) -> FoundBy:
        """Describe a version under a name."""
        texts = BehaviourTexts(name, description, record.tools_used, record.parameters_schema)
        return await found_by(name, texts, self.embedder)

    async def _say(self, scope: Scope, request_id: UUID, event: Message) -> None:
        """Publish the message at once; if that fails, it is published later."""
        try:
            await self.publish(event)
        except BusError as error:
            log.warning("%s: a change is published later: %s", scope, error)
        else:
            await self.records.mark_published([(scope, request_id)])


def _has_never_succeeded(record: CapabilityRecord) -> bool:
    return not (record.named or record.listed or record.usage.success_count)
