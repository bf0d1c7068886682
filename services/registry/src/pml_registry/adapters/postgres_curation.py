"""Curation in Postgres."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from uuid import UUID

import asyncpg
from typing_extensions import override

from pml_common.contracts.capability import Usage
from pml_common.contracts.scope import Scope
from pml_common.storage.columns import scope_columns, scope_of
from pml_common.storage.queries import load_queries, storable
from pml_common.storage.scoped import ScopedPools
from pml_registry.domain.curation import Suggestion, Unnamed
from pml_registry.domain.visibility import Viewer
from pml_registry.ports import CodeShape
from pml_registry.ports.curation import CurationStore, Variant

_SQL = load_queries("pml_registry")


class PostgresCurationStore(CurationStore):
    """Curation in the tables of capabilities and its own."""

    def __init__(self, pools: ScopedPools) -> None:
        self._pools = pools

    @override
    async def unnamed(self, viewer: Viewer, *, least_usage: int, limit: int) -> Sequence[Unnamed]:
        where, who = scope_columns(viewer.scope), (viewer.principal, viewer.is_admin)
        rows = await self._fetch(
            viewer.scope, "unnamed-capabilities", *where, least_usage, limit, *who
        )
        return [_unnamed(row) for row in rows]

    @override
    async def count_unnamed(self, scope: Scope) -> int:
        return await self._pools.fetchval(scope, _SQL["count-unnamed"], *scope_columns(scope))

    @override
    async def taken(self, scope: Scope, names: Collection[str]) -> Collection[str]:
        rows = await self._fetch(scope, "taken-callable-names", *scope_columns(scope), list(names))
        return {row["callable_name"] for row in rows}

    @override
    async def suggested(
        self, scope: Scope, capabilities: Sequence[UUID]
    ) -> Mapping[UUID, Suggestion]:
        rows = await self._fetch(scope, "suggestions", *scope_columns(scope), list(capabilities))
        return {row["pattern_id"]: _suggestion(row) for row in rows}

    @override
    async def keep(self, scope: Scope, suggestions: Sequence[Suggestion]) -> None:
        ordered = sorted(suggestions, key=lambda each: each.capability_id)
        rows = [
            (
                *scope_columns(scope),
                each.capability_id,
                each.name,
                each.confidence,
                [storable(reason) for reason in each.reasons],
                each.source,
            )
            for each in ordered
        ]
        async with self._pools.transaction(scope) as session:
            await session.executemany(_SQL["keep-suggestions"], rows)

    @override
    async def claim_uncurated(
        self, least: int, limit: int, now: datetime, until: datetime
    ) -> Sequence[Scope]:
        async with self._pools.across() as session:
            rows = await session.fetch(_SQL["claim-uncurated"], least, limit, now, until)
        return [scope_of(row) for row in rows]

    @override
    async def release(self, scope: Scope) -> None:
        await self._execute(scope, "release-curation")

    @override
    async def variant_groups(
        self, viewer: Viewer, *, shapes: int, variants: int
    ) -> Sequence[Sequence[Variant]]:
        where, who = scope_columns(viewer.scope), (viewer.principal, viewer.is_admin)
        rows = await self._fetch(viewer.scope, "variant-groups", *where, shapes, variants, *who)
        of_shape = groupby(rows, key=lambda row: row["shape_hash"])
        return [[_variant(row) for row in group] for _, group in of_shape]

    @override
    async def variants_of(
        self, viewer: Viewer, capability_id: UUID, limit: int
    ) -> Sequence[Variant]:
        where, who = scope_columns(viewer.scope), (viewer.principal, viewer.is_admin)
        rows = await self._fetch(viewer.scope, "variants-of", *where, capability_id, limit, *who)
        return [_variant(row) for row in rows]

    @override
    async def hand_over(self, scope: Scope, capability_id: UUID, lifted: UUID) -> None:
        await self._execute(scope, "hand-over-shape", capability_id, lifted)

    @override
    async def unread(self, limit: int) -> Sequence[tuple[Scope, Variant]]:
        async with self._pools.across() as session:
            rows = await session.fetch(_SQL["unread-shapes"], limit)
        return [(scope_of(row), _variant(row)) for row in rows]

    @override
    async def set_shape(self, scope: Scope, capability_id: UUID, shape: CodeShape) -> None:
        found = shape.shape_hash, shape.makes_calls
        await self._execute(scope, "set-shape", capability_id, *found)

    async def _fetch(self, scope: Scope, name: str, *values: object) -> Sequence[asyncpg.Record]:
        return await self._pools.fetch(scope, _SQL[name], *values)

    async def _execute(self, scope: Scope, name: str, *values: object) -> None:
        async with self._pools.transaction(scope) as session:
            await session.execute(_SQL[name], *scope_columns(scope), *values)


def _unnamed(row: asyncpg.Record) -> Unnamed:
    return Unnamed(
        capability_id=row["pattern_id"],
        name=row["name"],
        owner=row["owner"],
        description=row["description"],
        tools_used=tuple(row["tools_used"]),
        code=row["code"],
        usage=Usage(
            count=row["usage_count"],
            success_count=row["success_count"],
            mean_duration_ms=row["mean_duration_ms"],
            caller_faults=row["caller_faults"],
            environment_faults=row["environment_faults"],
        ),
    )


def _suggestion(row: asyncpg.Record) -> Suggestion:
    return Suggestion(
        row["pattern_id"], row["name"], row["confidence"], tuple(row["reasons"]), row["source"]
    )


def _variant(row: asyncpg.Record) -> Variant:
    return Variant(row["pattern_id"], row["code"])
