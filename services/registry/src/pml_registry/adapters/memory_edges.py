"""Edges that runs show, in memory; tested by the same suite as the Postgres store."""

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from typing_extensions import override

from pml_common.contracts.dependencies import DependencyType
from pml_common.contracts.scope import Scope
from pml_registry.adapters.memory_tables import EdgeRow, MemoryTables
from pml_registry.domain.edge_counts import EdgeKey, ShownBy, ShownEdge, counted, turned
from pml_registry.ports.graph import LOOK_AGAIN_AFTER, Counted, EdgeStore

_Key = TypeVar("_Key")


class MemoryEdgeStore(EdgeStore):
    """Edges in shared in-memory tables."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    @override
    async def count(self, shown: Sequence[ShownEdge], consumer: str, at: datetime) -> Counted:
        behaviours = self._tables.behaviours
        missing = {
            each.message_id
            for each in shown
            for capability in each.capabilities
            if (each.key[0], capability) not in behaviours
        }
        known = [each for each in shown if not (each.capabilities and each.message_id in missing)]
        made: list[EdgeKey] = []
        changed: list[EdgeKey] = []
        again = set[UUID]()
        for name in {each.counted_by(consumer) for each in known}:
            of_name = [each for each in known if each.counted_by(consumer) == name]
            counted_now = await self._count(of_name, name, at)
            made += counted_now.made
            changed += counted_now.turned
            again.update(counted_now.again)
        return Counted(missing, made, changed, again)

    async def _count(self, shown: Sequence[ShownEdge], consumer: str, at: datetime) -> Counted:
        ids = {each.message_id for each in shown}
        async with self._tables.inbox.batch_once(ids, consumer) as batch:
            new = [each for each in shown if each.message_id not in batch.replayed]
            rows = {each.key: self._row(each.key) for each in new}
            before = {
                key: ShownBy("inferred") if row is None else row.shown for key, row in rows.items()
            }
            after = counted(before, new, at)
            for key, shown_by in after.items():
                row = rows[key] or EdgeRow(shown_by, 0.0, at, at)
                confidence = shown_by.confidence(at)
                self._store(key, replace(row, shown=shown_by, confidence=confidence), at)
            again = set(batch.replayed)
        made = [key for key, row in rows.items() if row is None]
        return Counted((), made, turned(before, after), again)

    @override
    async def fade(self, at: datetime, limit: int) -> int:
        capabilities = _faded(self._tables.dependencies, self._tables.dependencies, at, limit)
        edges = self._tables.edges
        tools = {key: row for key, row in edges.items() if all(":" in end for end in key[1:3])}
        mixed = {key: row for key, row in edges.items() if key not in tools}
        return max(capabilities, _faded(tools, edges, at, limit), _faded(mixed, edges, at, limit))

    def _row(self, key: EdgeKey) -> EdgeRow | None:
        if _is_of_capabilities(key):
            return self._tables.dependencies.get(_dependency(key))
        return self._tables.edges.get(key)

    def _store(self, key: EdgeKey, row: EdgeRow, at: datetime) -> None:
        row = replace(row, looked_at=at)
        if _is_of_capabilities(key):
            self._tables.dependencies[_dependency(key)] = row
        else:
            self._tables.edges[key] = row


def _faded(
    looked: Mapping[_Key, EdgeRow], rows: MutableMapping[_Key, EdgeRow], at: datetime, limit: int
) -> int:
    """Look at those that are due; return their number."""
    due = sorted(
        (key for key, row in looked.items() if row.shown.count and _is_due(row, at)),
        key=lambda key: looked[key].looked_at,
    )[:limit]
    for key in due:
        after = rows[key].shown.at(at)
        if after is None:
            del rows[key]
        else:
            confidence = after.confidence(at)
            rows[key] = replace(rows[key], shown=after, confidence=confidence, looked_at=at)
    return len(due)


def _is_due(row: EdgeRow, at: datetime) -> bool:
    return row.looked_at < at - LOOK_AGAIN_AFTER


def _is_of_capabilities(key: EdgeKey) -> bool:
    return not any(":" in end for end in key[1:3])


def _dependency(key: EdgeKey) -> tuple[Scope, UUID, UUID, DependencyType]:
    scope, from_, to, type_ = key
    return scope, UUID(from_), UUID(to), type_
