"""The rows of graphs in Postgres, schema `registry`."""

import asyncio
from collections.abc import Sequence

import asyncpg
from pydantic import TypeAdapter
from typing_extensions import override

from pml_common.contracts.scope import Scope
from pml_common.contracts.structure import FieldMapping
from pml_common.storage.columns import columns, scope_columns, scope_of
from pml_common.storage.queries import load_queries
from pml_common.storage.scoped import ScopedPools
from pml_registry.adapters.postgres_rows import tool_definition
from pml_registry.domain.graph import GraphRows, Node, Relation
from pml_registry.domain.provides import ProvidesChange
from pml_registry.ports.graph import Compare, GraphStore

_SQL = load_queries("pml_registry")

_MAPPING: TypeAdapter[tuple[FieldMapping, ...]] = TypeAdapter(tuple[FieldMapping, ...])


class PostgresGraphStore(GraphStore):
    """Provides edges of a scope are compared by one replica at a time, under an advisory lock."""

    def __init__(self, pools: ScopedPools) -> None:
        self._pools = pools

    @override
    async def rows(self, scope: Scope, most_nodes: int, most_edges: int) -> GraphRows:
        where = scope_columns(scope)
        async with self._pools.snapshot(scope) as session:
            capabilities = await session.fetch(_SQL["graph-capabilities"], *where, most_nodes + 1)
            tools = await session.fetch(_SQL["graph-tools"], *where, most_nodes + 1)
            ids = [row["pattern_id"] for row in capabilities[:most_nodes]]
            needs = await session.fetch(_SQL["graph-dependencies"], *where, ids, most_edges + 1)
            tool_ids = [row["tool_id"] for row in tools[:most_nodes]]
            edges = await session.fetch(_SQL["graph-tool-edges"], *where, tool_ids, most_edges + 1)
            ends = [*map(str, ids), *tool_ids]
            mixed = await session.fetch(_SQL["graph-mixed-edges"], *where, ends, most_edges + 1)
        # A behaviour in several records is one node, under the name of the first.
        nodes = {
            str(row["pattern_id"]): _capability(row) for row in reversed(capabilities[:most_nodes])
        }
        return GraphRows(
            nodes=[*nodes.values(), *map(_tool, tools[:most_nodes])],
            relations=[
                *map(_need, needs[:most_edges]),
                *map(_tool_edge, edges[:most_edges]),
                *map(_mixed_edge, mixed[:most_edges]),
            ],
            complete=max(len(capabilities), len(tools)) <= most_nodes
            and max(len(needs), len(edges), len(mixed)) <= most_edges,
        )

    @override
    async def refresh_provides(self, scope: Scope, compare: Compare) -> ProvidesChange | None:
        where = scope_columns(scope)
        async with self._pools.transaction(scope) as session:
            await session.execute(_SQL["lock-provides"], *where)
            rows = await session.fetch(_SQL["provides-catalog"], *where)
            edges = await session.fetch(_SQL["stored-provides"], *where)
            stored = {(row["from_tool_id"], row["to_tool_id"]): row["coverage"] for row in edges}
            hashes = {row["tool_id"]: row["definition_hash"] for row in rows}
            stale = [row["tool_id"] for row in rows if row["is_stale"]]
            if not stale and all(hashes.keys() >= {*ends} for ends in stored):
                return None
            tools = [tool_definition(row) for row in rows]
            change = await asyncio.to_thread(compare, tools, stale, stored)
            await session.execute(_SQL["remove-provides"], *where, *columns(change.removed, 2))
            saved = [
                (
                    edge.from_,
                    edge.to,
                    edge.coverage,
                    _MAPPING.dump_json(edge.field_mapping).decode(),
                )
                for edge in change.saved
            ]
            await session.execute(_SQL["save-provides"], *where, *columns(saved, 4))
            done = [(tool_id, hashes[tool_id]) for tool_id in change.done]
            await session.execute(_SQL["note-provides"], *where, *columns(done, 2))
        return change

    @override
    async def stale_scopes(self, limit: int) -> Sequence[Scope]:
        async with self._pools.across() as session:
            rows = await session.fetch(_SQL["scopes-without-provides"], limit)
        return [scope_of(row) for row in rows]


def _capability(row: asyncpg.Record) -> Node:
    return Node(
        str(row["pattern_id"]),
        "capability",
        row["name"],
        row["description"],
        tuple(row["tools_used"]),
        private_to=row["private_to"],
    )


def _tool(row: asyncpg.Record) -> Node:
    tool = tool_definition(row)
    return Node(
        row["tool_id"],
        "tool",
        row["tool_id"],
        tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
    )


def _need(row: asyncpg.Record) -> Relation:
    return Relation(
        str(row["from_capability_id"]),
        str(row["to_capability_id"]),
        row["edge_type"],
        row["edge_source"],
        row["observed_count"],
        row["confidence_score"],
    )


def _mixed_edge(row: asyncpg.Record) -> Relation:
    return Relation(
        row["from_node"],
        row["to_node"],
        row["edge_type"],
        row["edge_source"],
        row["observed_count"],
        row["confidence_score"],
    )


def _tool_edge(row: asyncpg.Record) -> Relation:
    mapping = row["field_mapping"]
    return Relation(
        row["from_tool_id"],
        row["to_tool_id"],
        row["edge_type"],
        row["edge_source"],
        row["observed_count"],
        coverage=row["coverage"],
        field_mapping=() if mapping is None else _MAPPING.validate_json(mapping),
    )
