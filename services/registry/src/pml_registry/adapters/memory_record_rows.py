"""Rows of the in-memory record store, as its callers see them."""

from collections.abc import Iterator, Sequence
from uuid import UUID

from pml_common.contracts.callable_names import callable_name
from pml_common.contracts.capability import CapabilityRecord
from pml_common.contracts.dns import QueryRecords, RecordSummary, VersionSummary
from pml_common.contracts.scope import Scope
from pml_registry.adapters.memory_tables import (
    BehaviourRow,
    ChangeRow,
    MemoryTables,
    RecordRow,
    VersionRow,
)
from pml_registry.domain.cursors import After
from pml_registry.domain.globs import matches
from pml_registry.domain.record_changes import RecordState, StoredChange
from pml_registry.domain.record_views import total_usage
from pml_registry.domain.versions import Version
from pml_registry.domain.visibility import Viewer, place_of
from pml_registry.ports.records import Located


def callable_names(row: RecordRow) -> Sequence[str]:
    """The callable names of all names of a record."""
    return [callable_name(name) for name in row.names]


def located(viewer: Viewer, scope: Scope, row: RecordRow | None) -> Located | None:
    """A row as it is found by a viewer; None for none."""
    if row is None:
        return None
    return Located(scope, row.record_id, place_of(viewer, scope), row.latest)


def located_by_id(
    viewer: Viewer,
    wanted: UUID,
    rows: Sequence[tuple[Scope, RecordRow]],
    versions: Iterator[CapabilityRecord],
) -> Located | None:
    """The row with this id, or that has this behaviour, among `rows`, which the viewer sees."""
    seen = {row.record_id: row for _, row in rows}
    if wanted in seen:
        return located(viewer, viewer.scope, seen[wanted])
    of_code = [each for each in versions if each.capability_id == wanted and each.record_id in seen]
    of_code.sort(key=lambda each: each.version != seen[each.record_id].latest)
    if not of_code:
        return None
    return Located(viewer.scope, of_code[0].record_id, "project", of_code[0].version)


def is_match(query: QueryRecords, row: RecordRow, record: CapabilityRecord) -> bool:
    """Whether a record matches every filter."""
    tags = [str(version.tag) for version in row.versions if version.tag]
    text = (query.text or "").lower()
    return (
        (query.created_by is None or matches(query.created_by, row.versions[0].created_by))
        and (query.namespace is None or matches(query.namespace, row.name.partition(":")[0]))
        and (query.version_tag is None or any(matches(query.version_tag, tag) for tag in tags))
        and (text in row.name.lower() or text in record.description.lower())
        and {*query.tags} <= {*row.tags}
        and (query.visibility is None or row.visibility == query.visibility)
        and (record.listed or query.include_unlisted)
        and (row.named or query.include_unnamed)
    )


def rank_of(query: QueryRecords, summary: RecordSummary) -> After:
    """The place of a record in the order that is asked for."""
    ranks = {
        "usage": -summary.usage.count,
        "date": -round(summary.updated_at.timestamp() * 1e6),
        "name": 0,
    }
    return After(ranks[query.sort], summary.name, summary.record_id)


def order_of(after: After) -> tuple[int, str, UUID]:
    """Sort key of a place."""
    return after.rank, after.name, after.record_id


def version_summary(number: int, version: VersionRow, known: BehaviourRow) -> VersionSummary:
    """A version with its use."""
    return VersionSummary(
        version=number,
        version_tag=None if version.tag is None else str(version.tag),
        capability_id=version.behaviour,
        code_hash=known.record.code_hash,
        change_summary=version.change_summary,
        created_by=version.created_by,
        created_at=version.created_at,
        yanked_reason=version.yanked_reason,
        signature=None if version.signature is None else version.signature.value,
        key_id=None if version.signature is None else version.signature.key_id,
        signed_at=version.signed_at,
        usage=known.record.usage,
        health=known.record.health,
    )


def state_of(row: RecordRow) -> RecordState:
    """The part of a record that changes."""
    return RecordState(
        record_id=row.record_id,
        names=row.names,
        owner=row.owner,
        visibility=row.visibility,
        tags=row.tags,
        versions=tuple(
            Version(number, version.created_at, version.tag, version.yanked_reason)
            for number, version in enumerate(row.versions, 1)
        ),
        behaviours=tuple(row.behaviours),
        latest=row.latest,
    )


def stored_change(sequence: int, row: ChangeRow, version: VersionRow) -> StoredChange:
    """A row of a history, about this version."""
    return StoredChange(
        sequence=sequence,
        change=row.change,
        principal=row.principal,
        at=row.at,
        version=row.version,
        tag=row.tag,
        details=row.details,
        key_id=None if version.signature is None else version.signature.key_id,
        signed_at=version.signed_at,
    )


def record_summary(
    tables: MemoryTables,
    scope: Scope,
    row: RecordRow,
    record: CapabilityRecord,
    *,
    with_parameters: bool,
) -> RecordSummary:
    """A record in a list, with the use of all its versions."""
    usages = [tables.behaviours[scope, behaviour].record.usage for behaviour in {*row.behaviours}]
    return RecordSummary(
        record_id=row.record_id,
        fqdn=record.fqdn,
        name=row.name,
        scope=scope,
        owner=row.owner,
        visibility=row.visibility,
        tags=row.tags,
        version=row.latest,
        version_tag=record.version_tag,
        capability_id=record.capability_id,
        description=record.description,
        parameters_schema=record.parameters_schema if with_parameters else None,
        listed=record.listed,
        usage=total_usage(usages),
        health=record.health,
        last_good=record.last_good,
        created_by=row.versions[0].created_by,
        created_at=row.versions[0].created_at,
        updated_at=record.updated_at,
    )


def codes_of(
    tables: MemoryTables, scope: Scope, record_id: UUID, change: ChangeRow
) -> Sequence[str]:
    """The codes before and after a change that made a version."""
    if change.change != "versioned":
        return ()
    versions = tables.records[scope, record_id].versions
    pair = versions[change.version - 2].behaviour, change.behaviour
    return [tables.behaviours[scope, behaviour].record.code for behaviour in pair]


def made_by(tables: MemoryTables, scope: Scope, request_id: UUID) -> UUID | None:
    """The record that a request has changed or made."""
    return next(
        (
            record_id
            for (where, record_id), rows in tables.changes.items()
            if where == scope and any(row.request_id == request_id for row in rows)
        ),
        None,
    )
