"""Statements of one transaction that changes a record in Postgres."""

import json
from uuid import UUID

import asyncpg

from pml_common.contracts import ids
from pml_common.contracts.callable_names import callable_name
from pml_common.contracts.display_names import parse_display_name
from pml_common.contracts.registry import CapabilityChanged
from pml_common.contracts.scope import Scope
from pml_common.storage.columns import scope_columns, scope_of
from pml_common.storage.pool import Connection
from pml_common.storage.queries import load_queries, storable
from pml_registry.adapters.postgres_names import record_of, reservation_of
from pml_registry.adapters.postgres_rows import JSON_OBJECT, version_of
from pml_registry.adapters.postgres_signatures import sign_version
from pml_registry.adapters.postgres_vectors import put_embedded
from pml_registry.domain.names import first_free, unnamed_names
from pml_registry.domain.record_changes import Effect, RecordState, Refused, describes
from pml_registry.domain.reservations import holder_text, merge_refused
from pml_registry.domain.visibility import Viewer
from pml_registry.ports import FoundBy, VersionSigning
from pml_registry.ports.records import Located

_SQL = load_queries("pml_registry")


async def made_by(session: Connection, scope: Scope, request_id: UUID) -> UUID | None:
    """Return the record that this request changed or made before."""
    return await session.fetchval(_SQL["change-of-request"], *scope_columns(scope), request_id)


async def record_state(session: Connection, scope: Scope, record_id: UUID) -> RecordState:
    """Read and lock an existing record."""
    where = (*scope_columns(scope), record_id)
    row = await session.fetchrow(_SQL["record-state"], *where)
    if row is None:
        raise LookupError(f"{scope} has no record {record_id}")
    versions = await session.fetch(_SQL["versions-of-record"], *where)
    return RecordState(
        record_id=record_id,
        names=(*row["aliases"], row["name"]),
        owner=row["owner"],
        visibility=row["visibility"],
        tags=tuple(row["tags"]),
        versions=tuple(version_of(each) for each in versions),
        behaviours=tuple(each["pattern_id"] for each in versions),
        latest=row["latest"],
    )


async def holder_of(
    session: Connection, scope: Scope, name: str | None, record_id: UUID | None
) -> str | None:
    """Say who has a name, or one with the same callable name, if not this record."""
    if name is None:
        return None
    where, called = scope_columns(scope), callable_name(name)
    row = await session.fetchrow(_SQL["holder-of-name"], *where, name, called)
    reserved = await session.fetchrow(_SQL["reservation-of-name"], *where, called)
    return holder_text(
        name,
        None if row is None or row["record_id"] == record_id else record_of(scope, row),
        None if reserved is None else reservation_of(reserved),
    )


async def save_state(
    session: Connection,
    scope: Scope,
    before: RecordState,
    effect: Effect,
    found_by: FoundBy | None,
) -> None:
    """Store what of a record is different, and what the version concerned is found by then; a
    renamed one has succeeded."""
    after = effect.state
    where = (*scope_columns(scope), after.record_id)
    chosen = storable(after.owner), after.visibility, list(after.tags), after.latest
    await session.execute(_SQL["save-record"], *where, *chosen)
    pairs = zip(before.versions, after.versions, strict=True)
    changed = [new for old, new in pairs if old != new]
    # A tag is on one version: it leaves the former one first.
    for version in sorted(changed, key=lambda each: each.tag is not None):
        tag = None if version.tag is None else list(version.tag.parts)
        reason = None if version.yanked is None else storable(version.yanked)
        said = tag, reason, storable(version.description)
        await session.execute(_SQL["save-version"], *where, version.number, *said)
    is_renamed = after.name != before.name
    if is_renamed:
        name = parse_display_name(after.name)
        await session.execute(_SQL["rename-record"], *where, str(name), name.namespace, name.action)
    if found_by is not None:
        behaviour = after.behaviours[effect.version - 1]
        record = after.record_id, behaviour
        await describe_as(session, scope, *record, found_by, has_succeeded=is_renamed)


async def describe_as(
    session: Connection,
    scope: Scope,
    record_id: UUID,
    behaviour: UUID,
    found_by: FoundBy,
    *,
    has_succeeded: bool,
) -> None:
    """Store what the record's behaviour is found by, if the record stands for it; list it if it
    has succeeded."""
    described = await session.fetchval(
        _SQL["describe-as"],
        *scope_columns(scope),
        behaviour,
        record_id,
        storable(found_by.document),
        json.dumps(dict(found_by.terms)),
        has_succeeded,
        storable(found_by.description),
    )
    if described is not None:
        await put_embedded(session, scope, behaviour, found_by.embedded)


async def in_the_way_of_merge(
    session: Connection, viewer: Viewer, name: str, behaviour: UUID
) -> Refused | None:
    """Say who has the name, or which record the program is already."""
    scope, by = viewer.scope, storable(viewer.principal or "")
    holder = await holder_of(session, scope, name, None)
    row = await session.fetchrow(_SQL["record-of-code"], *scope_columns(scope), behaviour, by)
    return merge_refused(holder, None if row is None else record_of(scope, row))


async def add_change(
    session: Connection, scope: Scope, effect: Effect, viewer: Viewer, request_id: UUID
) -> CapabilityChanged:
    """Add what was requested to a record's history; return the message about it."""
    state, number, by = effect.state, effect.version, storable(viewer.principal or "")
    tag = state.versions[number - 1].tag
    behaviour = state.behaviours[number - 1]
    await session.execute(
        _SQL["add-change"],
        *scope_columns(scope),
        state.record_id,
        effect.change,
        by,
        number,
        behaviour,
        None if tag is None else list(tag.parts),
        JSON_OBJECT.dump_json(effect.details).decode(),
        request_id,
        False,
    )
    return CapabilityChanged(
        scope=scope,
        event_id=ids.effect_id(request_id, "record-changed"),
        capability_id=behaviour,
        name=state.name,
        change=effect.change,
        record_id=state.record_id,
        version=number,
        principal=by,
        described=effect.describes,
    )


def event_of(row: asyncpg.Record) -> CapabilityChanged:
    """Parse a row of `capability_changes`, with the record's name, into the message about it."""
    return CapabilityChanged(
        scope=scope_of(row),
        event_id=ids.effect_id(row["request_id"], "record-changed"),
        capability_id=row["pattern_id"],
        name=row["name"],
        change=row["change"],
        record_id=row["record_id"],
        version=row["version"],
        principal=row["principal"],
        described=describes(JSON_OBJECT.validate_json(row["details"])),
    )


async def copy_behaviour(
    session: Connection, source: Located, scope: Scope, *, keep_listed: bool
) -> tuple[UUID, str]:
    """Store the behaviour of a version in another scope, unless it is there; return its id, and
    what the version is for."""
    row = await session.fetchrow(
        _SQL["source-version"], *scope_columns(source.scope), source.record_id, source.version
    )
    if row is None:
        raise LookupError(f"record {source.record_id} has no version {source.version}")
    if source.scope == scope:
        return row["pattern_id"], row["description"]
    behaviour = ids.capability_id(scope, row["code_hash"])
    origin = *scope_columns(source.scope), row["pattern_id"]
    await session.execute(
        _SQL["adopt-behaviour"], *scope_columns(scope), behaviour, *origin, keep_listed
    )
    return behaviour, row["description"]


async def add_provisional_record(
    session: Connection,
    signing: VersionSigning,
    viewer: Viewer,
    behaviour: UUID,
    code_hash: str,
    origin: str,
    description: str,
) -> None:
    """Make a record with a provisional name for a behaviour that has none."""
    where, names = scope_columns(viewer.scope), unnamed_names(code_hash)
    rows = await session.fetch(_SQL["taken-names"], *where, list(names))
    name = first_free(names, [row["name"] for row in rows])
    record_id = ids.record_id(behaviour)
    by = storable(viewer.principal or "")
    await session.execute(_SQL["create-record"], *where, behaviour, record_id, by, name)
    await sign_version(session, signing, viewer.scope, record_id, 1, behaviour)
    await session.execute(_SQL["set-origin"], *where, record_id, origin)
    await session.execute(_SQL["describe-version"], *where, record_id, behaviour, description)
