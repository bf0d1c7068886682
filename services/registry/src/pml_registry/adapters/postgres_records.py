"""Records in Postgres, as people and other scopes name them, and their changes."""

from collections.abc import Callable, Sequence
from functools import partial
from uuid import UUID

from pydantic import TypeAdapter
from typing_extensions import override

from pml_common.contracts import ids
from pml_common.contracts.callable_names import callable_name
from pml_common.contracts.dns import QueryRecords, RecordSummary, VersionSummary
from pml_common.contracts.references import Fqdn, ScopedName
from pml_common.contracts.registry import CapabilityChanged
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import JsonObject
from pml_common.storage.columns import columns, scope_columns, scope_of
from pml_common.storage.queries import load_queries, storable
from pml_common.storage.scoped import ScopedPools
from pml_registry.adapters.postgres_changes import (
    add_change,
    add_provisional_record,
    copy_behaviour,
    describe_as,
    event_of,
    holder_of,
    in_the_way_of_merge,
    made_by,
    record_state,
    save_state,
)
from pml_registry.adapters.postgres_record_rows import (
    record_summary,
    stored_change,
    version_summary,
)
from pml_registry.adapters.postgres_rows import stored_version
from pml_registry.adapters.postgres_signatures import sign_version
from pml_registry.domain.cursors import After
from pml_registry.domain.globs import like_of
from pml_registry.domain.record_changes import Effect, RecordState, Refused, StoredChange
from pml_registry.domain.signatures import StoredVersion
from pml_registry.domain.visibility import Viewer, place_of
from pml_registry.ports import VersionSigning
from pml_registry.ports.records import (
    ChangeRequest,
    ForkRequest,
    Located,
    Made,
    MergeRequest,
    Outdated,
    RecordStore,
    Target,
)

_SQL = load_queries("pml_registry")
_TEXTS = TypeAdapter(tuple[str, ...])


class PostgresRecordStore(RecordStore):
    """Changes in a scope are made one after the other, under the lock of its names."""

    def __init__(self, pools: ScopedPools, signing: VersionSigning) -> None:
        self._pools = pools
        self._signing = signing

    @override
    async def locate(self, viewer: Viewer, target: Target | str) -> Located | None:
        where, who = scope_columns(viewer.scope), (viewer.principal, viewer.is_admin)
        fetchrow = partial(self._pools.fetchrow, viewer.scope)
        find_shared = partial(self._pools.reaching.fetchrow, viewer.scope)
        match target:
            case UUID():
                row = await fetchrow(_SQL["locate-own-by-id"], *where, target, *who)
            case ScopedName(scope, name):
                asked = str(name), *who, *scope_columns(scope), ""
                row = await find_shared(_SQL["locate-in-scope"], *where, *asked)
            case Fqdn(scope, name, digits):
                asked = str(name), *who, *scope_columns(scope), digits
                row = await find_shared(_SQL["locate-in-scope"], *where, *asked)
            case str():
                row = await find_shared(_SQL["locate-shared"], *where, target, None)
            case _:
                name = str(target)
                row = await fetchrow(_SQL["locate-own"], *where, name, *who)
                if row is None:
                    called = callable_name(name), name
                    row = await find_shared(_SQL["locate-shared"], *where, *called)
        if row is None:
            return None
        scope = scope_of(row)
        return Located(scope, row["record_id"], place_of(viewer, scope), row["version"])

    @override
    async def versions_of(
        self, viewer: Viewer, scope: Scope, record_id: UUID
    ) -> Sequence[tuple[VersionSummary, StoredVersion]]:
        which = *scope_columns(scope), record_id
        pool = self._pools.over(viewer.scope, scope)
        rows = await pool.fetch(viewer.scope, _SQL["summaries-of-versions"], *which)
        return [(version_summary(row), stored_version(row)) for row in rows]

    @override
    async def query(
        self, query: QueryRecords, after: After | None
    ) -> tuple[Sequence[tuple[After, RecordSummary]], int]:
        globs = [query.created_by, query.namespace, query.version_tag]
        begin = (None, None, None) if after is None else (after.rank, after.name, after.record_id)
        pool = self._pools if query.reach == "project" else self._pools.reaching
        rows = await pool.fetch(
            query.scope,
            _SQL["query-records"],
            *scope_columns(query.scope),
            query.principal,
            query.is_admin,
            query.reach,
            *(None if glob is None else like_of(glob) for glob in globs),
            None if query.text is None else like_of(f"*{query.text}*"),
            list(query.tags),
            query.visibility,
            query.include_unlisted,
            query.include_unnamed,
            query.sort,
            *begin,
            query.limit + 1,
            query.include_parameters,
        )
        found = [record_summary(row) for row in rows if row["record_id"] is not None]
        return found, rows[0]["total"]

    @override
    async def history(
        self, viewer: Viewer, scope: Scope, record_id: UUID, before: int | None, limit: int
    ) -> Sequence[tuple[StoredChange, Sequence[str]]]:
        which = *scope_columns(scope), record_id, before, limit
        pool = self._pools.over(viewer.scope, scope)
        rows = await pool.fetch(viewer.scope, _SQL["read-history"], *which)
        return [stored_change(row) for row in rows]

    @override
    async def made(self, scope: Scope, request_id: UUID) -> UUID | None:
        async with self._pools.transaction(scope) as session:
            return await made_by(session, scope, request_id)

    @override
    async def change(
        self,
        scope: Scope,
        record_id: UUID,
        request: ChangeRequest,
        decide: Callable[[RecordState, str | None], Effect | Refused | None],
    ) -> Made | Refused | Outdated:
        async with self._pools.transaction(scope) as session:
            await session.execute(_SQL["lock-names"], *scope_columns(scope))
            made = await made_by(session, scope, request.request_id)
            if made is not None:
                return Made(made)
            before = await record_state(session, scope, record_id)
            holder = await holder_of(session, scope, request.name, record_id)
            effect = decide(before, holder)
            if effect is None:
                return Made(record_id, changed=False)
            if isinstance(effect, Refused):
                return effect
            if request.found_by is not None and request.found_as != effect.found_as:
                return Outdated()
            await save_state(session, scope, before, effect, request.found_by)
            event = await add_change(session, scope, effect, request.viewer, request.request_id)
        return Made(record_id, event)

    @override
    async def fork(self, source: Located, request: ForkRequest) -> Made | Refused:
        scope, by = request.viewer.scope, storable(request.viewer.principal or "")
        async with self._pools.over(scope, source.scope).transaction(scope) as session:
            await session.execute(_SQL["lock-names"], *scope_columns(scope))
            made = await made_by(session, scope, request.request_id)
            if made is not None:
                return Made(made)
            record_id = ids.record_id(request.request_id)
            holder = await holder_of(session, scope, str(request.name), record_id)
            if holder is not None:
                return Refused("conflict", f"{holder}: choose another name")
            behaviour, description = await copy_behaviour(session, source, scope, keep_listed=True)
            name = str(request.name), request.name.namespace, request.name.action
            await session.execute(
                _SQL["fork-record"],
                *scope_columns(scope),
                record_id,
                by,
                *name,
                request.forked_from,
                behaviour,
                description,
            )
            await sign_version(session, self._signing, scope, record_id, 1, behaviour)
            state = await record_state(session, scope, record_id)
            effect = Effect(state, "forked", 1, {"forked_from": request.forked_from})
            event = await add_change(session, scope, effect, request.viewer, request.request_id)
        return Made(record_id, event)

    @override
    async def merge(self, request: MergeRequest) -> Made | Refused:
        scope, behaviour, name = request.viewer.scope, request.behaviour, request.name
        async with self._pools.transaction(scope) as session:
            await session.execute(_SQL["lock-names"], *scope_columns(scope))
            made = await made_by(session, scope, request.request_id)
            if made is not None:
                return Made(made)
            refused = await in_the_way_of_merge(session, request.viewer, str(name), behaviour)
            if refused is not None:
                return refused
            by = storable(request.viewer.principal or "")
            named = behaviour, str(name), name.namespace, name.action, by
            record_id = await session.fetchval(
                _SQL["name-unnamed-record"], *scope_columns(scope), *named
            )
            state = await record_state(session, scope, record_id)
            described = *scope_columns(scope), record_id, behaviour
            said = storable(request.found_by.description)
            await session.execute(_SQL["describe-version"], *described, said)
            which = record_id, behaviour, request.found_by
            await describe_as(session, scope, *which, has_succeeded=False)
            details: JsonObject = {"name": str(name), "merged_from": [*request.merged_from]}
            effect = Effect(state, "named", state.latest, details)
            event = await add_change(session, scope, effect, request.viewer, request.request_id)
        return Made(record_id, event)

    @override
    async def merged_from(self, viewer: Viewer, scope: Scope, record_id: UUID) -> tuple[str, ...]:
        pool, which = self._pools.over(viewer.scope, scope), (*scope_columns(scope), record_id)
        found = await pool.fetchval(viewer.scope, _SQL["merged-from"], *which)
        return () if found is None else _TEXTS.validate_json(found)

    @override
    async def adopt(self, source: Located, viewer: Viewer, origin: str) -> UUID:
        async with self._pools.reaching.transaction(viewer.scope) as session:
            await session.execute(_SQL["lock-names"], *scope_columns(viewer.scope))
            behaviour, description = await copy_behaviour(
                session, source, viewer.scope, keep_listed=False
            )
            code_hash = await session.fetchval(
                _SQL["hash-of-code"], *scope_columns(viewer.scope), behaviour
            )
            await add_provisional_record(
                session, self._signing, viewer, behaviour, code_hash, origin, description
            )
        return behaviour

    @override
    async def unpublished(self, limit: int) -> Sequence[tuple[UUID, CapabilityChanged]]:
        async with self._pools.across() as session:
            rows = await session.fetch(_SQL["unpublished-changes"], limit)
        return [(row["request_id"], event_of(row)) for row in rows]

    @override
    async def mark_published(self, requests: Sequence[tuple[Scope, UUID]]) -> None:
        said = [(*scope_columns(scope), request_id) for scope, request_id in requests]
        async with self._pools.across() as session:
            await session.execute(_SQL["mark-published"], *columns(said, 3))
