"""The rows of graphs in memory; tested by the same suite as the Postgres store."""

from collections.abc import Sequence
from dataclasses import replace

from typing_extensions import override

from pml_common.contracts.dependencies import EdgeType
from pml_common.contracts.scope import Scope
from pml_common.contracts.structure import Coverage
from pml_registry.adapters.memory_tables import EdgeRow, MemoryTables
from pml_registry.domain.graph import GraphRows, Node, Relation
from pml_registry.domain.provides import Ends, ProvidesChange
from pml_registry.ports.graph import Compare, GraphStore


class MemoryGraphStore(GraphStore):
    """Reads the shared in-memory tables, and keeps the provides edges in them."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    @override
    async def rows(self, scope: Scope, most_nodes: int, most_edges: int) -> GraphRows:
        tables = self._tables
        listed = [each for each in tables.latest(scope) if each.listed]
        listed.sort(key=lambda each: (-each.usage.count, each.name))
        capabilities = {
            str(each.capability_id): Node(
                str(each.capability_id),
                "capability",
                each.name,
                each.description,
                each.tools_used,
                private_to=each.owner if each.visibility == "private" else None,
            )
            for each in reversed(listed[:most_nodes])
        }
        definitions = sorted(
            (tool for (its_scope, _), (tool, _) in tables.tools.items() if its_scope == scope),
            key=lambda tool: tool.tool_id,
        )
        tools = {
            tool.tool_id: Node(
                tool.tool_id,
                "tool",
                tool.tool_id,
                tool.description,
                input_schema=tool.input_schema,
                output_schema=tool.output_schema,
            )
            for tool in definitions[:most_nodes]
        }
        needs = [
            each
            for each in self._needs(scope)
            if each.from_ in capabilities and each.to in capabilities
        ]
        edges = [
            each for each in self._tool_edges(scope) if each.from_ in tools and each.to in tools
        ]
        nodes = capabilities | tools
        mixed = [
            each for each in self._mixed_edges(scope) if each.from_ in nodes and each.to in nodes
        ]
        return GraphRows(
            nodes=list(nodes.values()),
            relations=[*needs[:most_edges], *edges[:most_edges], *mixed[:most_edges]],
            complete=max(len(listed), len(definitions)) <= most_nodes
            and max(len(needs), len(edges), len(mixed)) <= most_edges,
        )

    def _needs(self, scope: Scope) -> Sequence[Relation]:
        found = [
            _relation((its_scope, str(from_), str(to), type_), row)
            for (its_scope, from_, to, type_), row in self._tables.dependencies.items()
            if its_scope == scope
        ]
        return sorted(found, key=lambda e: (-(e.confidence or 0.0), e.from_, e.to, e.type))

    def _mixed_edges(self, scope: Scope) -> Sequence[Relation]:
        found = [
            _relation(key, row)
            for key, row in self._tables.edges.items()
            if key[0] == scope and not all(":" in end for end in key[1:3])
        ]
        return sorted(found, key=lambda e: (-(e.confidence or 0.0), e.from_, e.to, e.type))

    def _tool_edges(self, scope: Scope) -> Sequence[Relation]:
        observed = [
            replace(_relation(key, row), confidence=None)
            for key, row in self._tables.edges.items()
            if key[0] == scope and all(":" in end for end in key[1:3])
        ]
        provided = [
            Relation(
                edge.from_,
                edge.to,
                "provides",
                "inferred",
                coverage=edge.coverage,
                field_mapping=edge.field_mapping,
            )
            for (its_scope, *_), edge in self._tables.provides.items()
            if its_scope == scope
        ]
        return sorted(
            [*observed, *provided], key=lambda e: (-e.observed_count, e.from_, e.to, e.type)
        )

    @override
    async def refresh_provides(self, scope: Scope, compare: Compare) -> ProvidesChange | None:
        tables = self._tables
        tools = {
            tool_id: tool
            for (its_scope, tool_id), (tool, _) in sorted(
                tables.tools.items(), key=lambda item: item[0][1]
            )
            if its_scope == scope
        }
        stored: dict[Ends, Coverage] = {
            (from_, to): edge.coverage
            for (its_scope, from_, to), edge in tables.provides.items()
            if its_scope == scope
        }
        stale = [
            tool_id
            for tool_id, tool in tools.items()
            if tables.provides_hashes.get((scope, tool_id)) != tool.definition_hash
        ]
        if not stale and all(tools.keys() >= {*ends} for ends in stored):
            return None
        change = compare(list(tools.values()), stale, stored)
        for ends in change.removed:
            del tables.provides[scope, *ends]
        tables.provides |= {(scope, edge.from_, edge.to): edge for edge in change.saved}
        tables.provides_hashes |= {
            (scope, tool_id): tools[tool_id].definition_hash for tool_id in change.done
        }
        return change

    @override
    async def stale_scopes(self, limit: int) -> Sequence[Scope]:
        stale = {
            scope: None
            for (scope, tool_id), (tool, _) in self._tables.tools.items()
            if self._tables.provides_hashes.get((scope, tool_id)) != tool.definition_hash
        }
        return list(stale)[:limit]


def _relation(key: tuple[Scope, str, str, EdgeType], row: EdgeRow) -> Relation:
    _, from_, to, type_ = key
    return Relation(from_, to, type_, row.shown.source, row.shown.count, row.confidence)
