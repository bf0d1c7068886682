"""Edges that runs show, counted and fading, in Postgres, schema `registry`."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, Literal

import asyncpg
from pydantic import TypeAdapter
from typing_extensions import override

from pml_common.storage.columns import columns, scope_columns, scope_of
from pml_common.storage.pool import Connection, transaction
from pml_common.storage.queries import load_queries
from pml_common.storage.scoped import ScopedPools
from pml_registry.domain.edge_counts import EdgeKey, Share, ShownBy, ShownEdge, counted, turned
from pml_registry.ports.graph import LOOK_AGAIN_AFTER, Counted, EdgeStore

_SQL = load_queries("pml_registry")

_Table = Literal["capability-edges", "tool-edges", "mixed-edges"]
_TABLES: Final[Sequence[_Table]] = ("capability-edges", "tool-edges", "mixed-edges")
_SHARES: Final = TypeAdapter(tuple[tuple[int, float, int, int], ...])


class PostgresEdgeStore(EdgeStore):
    """Counts in Python, under locks of the rows, which are taken in one order."""

    def __init__(self, pools: ScopedPools) -> None:
        self._pools = pools

    @override
    async def count(self, shown: Sequence[ShownEdge], consumer: str, at: datetime) -> Counted:
        async with transaction(self._pools.batch) as session:
            named = [
                (each.message_id, *scope_columns(each.key[0]), capability)
                for each in shown
                for capability in each.capabilities
            ]
            unknown = await session.fetch(_SQL["unknown-capabilities"], *columns(named, 4))
            missing = {row["message_id"] for row in unknown}
            claims = {
                (each.message_id, each.counted_by(consumer), *scope_columns(each.key[0]))
                for each in shown
                if not (each.capabilities and each.message_id in missing)
            }
            claimed = await session.fetch(_SQL["claim-edges"], *columns(sorted(claims), 4))
            new = {(row["message_id"], row["consumer"]) for row in claimed}
            counting = [
                each for each in shown if (each.message_id, each.counted_by(consumer)) in new
            ]
            made: list[EdgeKey] = []
            changed: list[EdgeKey] = []
            for table in _TABLES:
                of_table = [each for each in counting if _table(each.key) == table]
                if of_table:
                    met, others = await _count(session, table, of_table, at)
                    made += met
                    changed += others
            again = {message_id for message_id, *_ in claims} - {
                message_id for message_id, _ in new
            }
        return Counted(missing, made, changed, again)

    @override
    async def fade(self, at: datetime, limit: int) -> int:
        looked_at = 0
        for table in _TABLES:
            async with transaction(self._pools.batch) as session:
                rows = await session.fetch(_SQL[f"due-{table}"], at - LOOK_AGAIN_AFTER, limit)
                after = {_key(row): _shown_by(row).at(at) for row in rows}
                kept = {key: shown for key, shown in after.items() if shown is not None}
                await _save(session, table, kept, at)
                gone = [_columns(key) for key in after if key not in kept]
                await session.execute(_SQL[f"forget-{table}"], *columns(gone, 5))
            looked_at = max(looked_at, len(rows))
        return looked_at


def shares_column(shares: Iterable[Share]) -> str:
    """Render the column `shares`."""
    return json.dumps([[each.cohort, each.strength, each.hour, each.in_hour] for each in shares])


async def _count(
    session: Connection, table: _Table, shown: Sequence[ShownEdge], at: datetime
) -> tuple[Sequence[EdgeKey], Sequence[EdgeKey]]:
    """Count edges of one table; return the new ones, and those with another source."""
    keys = columns(sorted({_columns(each.key) for each in shown}), 5)
    met = await session.fetch(_SQL[f"meet-{table}"], *keys)
    rows = await session.fetch(_SQL[f"lock-{table}"], *keys)
    made = {_key(row) for row in met}
    before = {
        key: ShownBy("inferred") if key in made else _shown_by(row)
        for key, row in ((_key(row), row) for row in rows)
    }
    after = counted(before, shown, at)
    await _save(session, table, after, at)
    return list(made), turned(before, after)


async def _save(
    session: Connection, table: _Table, edges: Mapping[EdgeKey, ShownBy], at: datetime
) -> None:
    saved = [
        (
            *_columns(key),
            shown.source,
            shown.count,
            shown.confidence(at),
            shares_column(shown.shares),
            shown.last_shown,
        )
        for key, shown in edges.items()
    ]
    await session.execute(_SQL[f"save-{table}"], *columns(saved, 10), at)


def _table(key: EdgeKey) -> _Table:
    tools = sum(":" in end for end in key[1:3])
    return ("capability-edges", "mixed-edges", "tool-edges")[tools]


def _columns(key: EdgeKey) -> tuple[str, str, str, str, str]:
    scope, from_, to, type_ = key
    return *scope_columns(scope), from_, to, type_


def _key(row: asyncpg.Record) -> EdgeKey:
    return scope_of(row), row["from_id"], row["to_id"], row["edge_type"]


def _shown_by(row: asyncpg.Record) -> ShownBy:
    return ShownBy(
        row["edge_source"],
        row["observed_count"],
        tuple(Share(*each) for each in _SHARES.validate_json(row["shares"])),
        row["last_observed"],
        row["base_source"],
        row["base_confidence"],
    )
