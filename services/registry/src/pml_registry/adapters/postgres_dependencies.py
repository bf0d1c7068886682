"""Dependencies between capabilities in Postgres, schema `registry`."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from uuid import UUID

import asyncpg
from typing_extensions import override

from pml_common.contracts.dependencies import (
    Dependency,
    DependencyPage,
    DependencyType,
    ListDependencies,
)
from pml_common.contracts.scope import Scope
from pml_common.storage.columns import columns, scope_columns
from pml_common.storage.pool import Connection
from pml_common.storage.queries import load_queries
from pml_common.storage.scoped import ScopedPools
from pml_registry.adapters.postgres_edges import shares_column
from pml_registry.domain.dependencies import (
    STATED_CONFIDENCE,
    Need,
    NewDependency,
    Peer,
    Related,
    admit_dependency,
    cycle_closed,
)
from pml_registry.domain.orders import MOST_CONFIDENT
from pml_registry.domain.visibility import Viewer
from pml_registry.ports.graph import Added, DependencyStore

_SQL = load_queries("pml_registry")


class PostgresDependencyStore(DependencyStore):
    """Additions to a scope are made one after the other, under an advisory lock."""

    def __init__(self, pools: ScopedPools) -> None:
        self._pools = pools

    @override
    async def add(self, scope: Scope, new: NewDependency) -> Added:
        where, ends = scope_columns(scope), (new.from_, new.to, new.type)
        async with self._pools.transaction(scope) as session:
            await session.execute(_SQL["lock-dependencies"], *where)
            row = await session.fetchrow(_SQL["one-dependency"], *where, *ends, None)
            if row is not None:
                await session.execute(_SQL["keep-dependency"], *where, *ends, STATED_CONFIDENCE)
                return Added(_dependency(row), False, ())
            cycle = admit_dependency(new, await _needs(session, scope))
            at = datetime.now(UTC)
            shown = new.shown_by(at)
            values = shown.source, shown.count, shown.confidence(at), shares_column(shown.shares)
            base = shown.base, shown.base_confidence
            await session.execute(_SQL["add-dependency"], *where, *ends, *values, *base)
            made = await session.fetch(_SQL["one-dependency"], *where, *ends, None)
        return Added(_dependency(made[0]), True, cycle)

    @override
    async def remove(
        self, scope: Scope, from_: UUID, to: UUID, type_: DependencyType | None
    ) -> int:
        async with self._pools.transaction(scope) as session:
            rows = await session.fetch(
                _SQL["remove-dependencies"], *scope_columns(scope), from_, to, type_
            )
        return len(rows)

    @override
    async def page(self, asked: ListDependencies, behaviour: UUID) -> DependencyPage:
        wanted = (asked.direction != "in", asked.direction != "out")
        where = (*scope_columns(asked.scope), behaviour, *wanted, asked.principal)
        page = asked.limit + 1, asked.offset, *(MOST_CONFIDENT.after(asked.cursor) or (None,) * 4)
        async with self._pools.snapshot(asked.scope) as session:
            rows = await session.fetch(_SQL["list-dependencies"], *where, *page)
            total = await session.fetchval(_SQL["total-dependencies"], *where)
        shown, following = MOST_CONFIDENT.cut([_dependency(row) for row in rows], asked.limit)
        return DependencyPage(
            capability_id=behaviour, dependencies=shown, total=total, next_cursor=following
        )

    @override
    async def counts(self, viewer: Viewer, behaviours: Sequence[UUID]) -> Mapping[UUID, int]:
        asked = *scope_columns(viewer.scope), list(behaviours), viewer.principal
        rows = await self._pools.fetch(viewer.scope, _SQL["count-dependencies"], *asked)
        return {row["id"]: row["total"] for row in rows}

    @override
    async def needs(
        self, scope: Scope, behaviours: Sequence[UUID], limit: int
    ) -> Mapping[UUID, Sequence[Dependency]]:
        found: dict[UUID, list[Dependency]] = {each: [] for each in behaviours}
        asked = *scope_columns(scope), list(found), limit
        rows = await self._pools.fetch(scope, _SQL["needs-of-each"], *asked)
        for row in rows:
            found[row["from_capability_id"]].append(_dependency(row))
        return found

    @override
    async def cycle(self, scope: Scope, caller: UUID, called: UUID) -> Sequence[UUID]:
        async with self._pools.snapshot(scope) as session:
            return cycle_closed(caller, called, await _needs(session, scope))

    @override
    async def peer(self, scope: Scope, behaviour: UUID) -> Peer | None:
        row = await self._pools.fetchrow(scope, _SQL["peer"], *scope_columns(scope), behaviour)
        return None if row is None else _peer(row)

    @override
    async def peers(self, scope: Scope, behaviours: Sequence[UUID]) -> Sequence[Peer]:
        asked = *scope_columns(scope), list(behaviours)
        rows = await self._pools.fetch(scope, _SQL["peers-by-id"], *asked)
        found = {row["pattern_id"]: _peer(row) for row in rows}
        return [found[each] for each in behaviours if each in found]

    @override
    async def peers_by_tools(self, scope: Scope, behaviour: UUID, limit: int) -> Sequence[Peer]:
        # The index of arrays serves the batch role alone: its operator is not leakproof, so for the
        # other the policy would have to be checked of every row of the scope first.
        async with self._pools.across() as session:
            rows = await session.fetch(
                _SQL["peers-by-tools"], *scope_columns(scope), behaviour, limit
            )
        return [_peer(row) for row in rows]

    @override
    async def relate(self, scope: Scope, behaviour: UUID, related: Sequence[Related]) -> int:
        rows = [(each.to, each.type, each.confidence) for each in related]
        async with self._pools.transaction(scope) as session:
            made = await session.fetch(
                _SQL["relate"], *scope_columns(scope), behaviour, *columns(rows, 3)
            )
        return len(made)


async def _needs(session: Connection, scope: Scope) -> Sequence[Need]:
    rows = await session.fetch(_SQL["needs"], *scope_columns(scope))
    return [
        Need(row["from_capability_id"], row["to_capability_id"], row["edge_source"]) for row in rows
    ]


def _peer(row: asyncpg.Record) -> Peer:
    return Peer(row["pattern_id"], row["description"], frozenset(row["tools_used"]), row["listed"])


def _dependency(row: asyncpg.Record) -> Dependency:
    """Parse a row of `capability_dependency` with the names of its ends."""
    return Dependency(
        from_capability_id=row["from_capability_id"],
        from_name=row["from_name"],
        to_capability_id=row["to_capability_id"],
        to_name=row["to_name"],
        edge_type=row["edge_type"],
        edge_source=row["edge_source"],
        observed_count=row["observed_count"],
        confidence_score=row["confidence_score"],
        created_at=row["created_at"],
        last_observed=row["last_observed"],
    )
