"""Handles the queries of the capability DNS about records."""

from pml_common.bus.errors import QueryFailed
from pml_common.contracts.capability import Usage
from pml_common.contracts.cursors import BadCursor
from pml_common.contracts.dns import (
    ChangedRecord,
    ChangeRecord,
    DescribeRecord,
    DnsQuery,
    Fork,
    History,
    LookupRecord,
    QueryRecords,
    ReadHistory,
    RecordPage,
    ResolvedName,
    VersionSummary,
    Whois,
    WhoisRecord,
)
from pml_registry.application.record_service import RecordService
from pml_registry.application.resolution import Resolution
from pml_registry.application.version_checks import VersionChecks
from pml_registry.domain.cursors import (
    decode_after,
    decode_sequence,
    encode_after,
    encode_sequence,
)
from pml_registry.domain.history import history_entry
from pml_registry.domain.previews import preview_of
from pml_registry.domain.record_changes import Describe, OwnChange
from pml_registry.domain.record_views import total_usage
from pml_registry.domain.signatures import StoredVersion
from pml_registry.domain.visibility import Viewer
from pml_registry.ports.records import RecordStore


async def on_lookup_record(query: LookupRecord, resolution: Resolution) -> ResolvedName:
    """Resolve a reference. Raises QueryFailed `not_found` or `invalid`."""
    meant = await resolution.resolve(_viewer(query), query.reference)
    record = meant.record
    return ResolvedName(
        reference=query.reference,
        fqdn=record.fqdn,
        name=record.name,
        record_id=record.record_id,
        capability_id=record.capability_id,
        scope=record.scope,
        found_in=meant.located.place,
        version=record.version,
        version_tag=record.version_tag,
        source_type=record.source.type,
        preview=preview_of(record.code),
        health=record.health,
        last_good=record.last_good,
        notices=record.notices,
    )


async def on_whois_record(
    query: WhoisRecord, resolution: Resolution, records: RecordStore, checks: VersionChecks
) -> Whois:
    """Return all that is known of a record. Raises QueryFailed `not_found` or `invalid`."""
    viewer = _viewer(query)
    meant = await resolution.resolve(viewer, query.reference)
    record = meant.record
    stored = await records.versions_of(viewer, record.scope, record.record_id)
    versions = tuple(_verified(summary, version, checks) for summary, version in stored)
    return Whois(
        fqdn=record.fqdn,
        found_in=meant.located.place,
        record=record,
        usage=record.usage,
        record_usage=_total(versions),
        versions=versions,
        merged_from=await records.merged_from(viewer, record.scope, record.record_id),
        notices=record.notices,
    )


async def on_query_records(query: QueryRecords, records: RecordStore) -> RecordPage:
    """Return a page of the records that match. Raises QueryFailed `invalid` for a foreign
    cursor."""
    try:
        after = None if query.cursor is None else decode_after(query.cursor)
    except BadCursor as error:
        raise QueryFailed("invalid", str(error)) from error
    found, total = await records.query(query, after)
    page = found[: query.limit]
    is_last = len(found) <= query.limit
    return RecordPage(
        records=tuple(summary for _, summary in page),
        total=total,
        next_cursor=None if is_last else encode_after(page[-1][0]),
    )


async def on_read_history(
    query: ReadHistory, resolution: Resolution, records: RecordStore
) -> History:
    """Return a page of a record's changes. Raises QueryFailed `not_found` or `invalid`."""
    try:
        before = None if query.cursor is None else decode_sequence(query.cursor)
    except BadCursor as error:
        raise QueryFailed("invalid", str(error)) from error
    viewer = _viewer(query)
    record = (await resolution.resolve(viewer, query.reference)).record
    page = before, query.limit + 1
    found = await records.history(viewer, record.scope, record.record_id, *page)
    page = found[: query.limit]
    is_last = len(found) <= query.limit
    return History(
        record_id=record.record_id,
        fqdn=record.fqdn,
        name=record.name,
        entries=tuple(history_entry(record.name, change, codes) for change, codes in page),
        next_cursor=None if is_last else encode_sequence(page[-1][0].sequence),
        notices=record.notices,
    )


async def on_change_record(query: ChangeRecord, service: RecordService) -> ChangedRecord:
    """Change a record. Raises QueryFailed `not_found`, `invalid` or `conflict`."""
    return await _changed(query, query.change, service)


async def on_describe_record(query: DescribeRecord, service: RecordService) -> ChangedRecord:
    """Say what a version is for. Raises QueryFailed `not_found`, `invalid` or `conflict`."""
    if not query.description.strip():
        raise QueryFailed("invalid", "the description is blank: say what the version is for")
    return await _changed(query, Describe(query.description), service)


async def _changed(
    query: ChangeRecord | DescribeRecord, wanted: OwnChange | Fork, service: RecordService
) -> ChangedRecord:
    viewer = _viewer(query)
    after, changed = await service.change(viewer, query.request_id, query.reference, wanted)
    record = after.record
    return ChangedRecord(fqdn=record.fqdn, record=record, changed=changed, notices=record.notices)


def _verified(
    summary: VersionSummary, version: StoredVersion, checks: VersionChecks
) -> VersionSummary:
    """Say of a version whether it is verified."""
    streak = summary.usage.success_streak
    verified = checks.refusal(version) is None and checks.is_verified(version, streak)
    return summary.model_copy(update={"verified": verified})


def _viewer(query: DnsQuery) -> Viewer:
    return Viewer(query.scope, query.principal, query.is_admin)


def _total(versions: tuple[VersionSummary, ...]) -> Usage:
    """The use of all versions; versions with the same code have the same."""
    of_code = {version.capability_id: version.usage for version in versions}.values()
    return total_usage(of_code)
