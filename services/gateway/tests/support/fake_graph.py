"""A fake of the registry's dependencies and graph."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from pml_common.bus.errors import QueryFailed
from pml_common.bus.port import Bus
from pml_common.contracts import catalog
from pml_common.contracts.capability import CapabilityRecord
from pml_common.contracts.dependencies import (
    AddDependency,
    AddedDependency,
    Dependency,
    DependencyPage,
    FindPath,
    GraphEdge,
    GraphNode,
    GraphPath,
    Hypergraph,
    ListDependencies,
    RemovedDependencies,
    RemoveDependency,
    ShowHypergraph,
)
from pml_common.contracts.registry import ResolveCapability
from pml_common.contracts.scope import Scope
from services.gateway.tests.support.builders import AT

Resolve = Callable[[ResolveCapability], Awaitable[CapabilityRecord]]


@dataclass
class FakeGraph:
    """Keeps dependencies; its graph has one node of each end, and its paths one edge."""

    kept: list[Dependency] = field(default_factory=list[Dependency])
    asked: list[ShowHypergraph | FindPath] = field(default_factory=list[ShowHypergraph | FindPath])
    _resolve: Resolve | None = None

    async def serve(self, bus: Bus, resolve: Resolve) -> None:
        """Answer the queries."""
        self._resolve = resolve
        await bus.serve(catalog.ADD_DEPENDENCY, self._add)
        await bus.serve(catalog.REMOVE_DEPENDENCY, self._remove)
        await bus.serve(catalog.LIST_DEPENDENCIES, self._list)
        await bus.serve(catalog.SHOW_HYPERGRAPH, self._show)
        await bus.serve(catalog.FIND_PATH, self._path)

    async def _of(self, scope: Scope, reference: str) -> CapabilityRecord:
        assert self._resolve is not None
        return await self._resolve(ResolveCapability(scope=scope, reference=reference))

    async def _add(self, query: AddDependency) -> AddedDependency:
        one = await self._of(query.scope, query.reference)
        other = await self._of(query.scope, query.to)
        if one.capability_id == other.capability_id:
            raise QueryFailed("invalid", f"{one.name} cannot depend on itself")
        new = Dependency(
            from_capability_id=one.capability_id,
            from_name=one.name,
            to_capability_id=other.capability_id,
            to_name=other.name,
            edge_type=query.edge_type,
            edge_source=query.edge_source,
            observed_count=0,
            confidence_score=0.5,
            created_at=AT,
            last_observed=AT,
        )
        if new in self.kept:
            return AddedDependency(created=False, dependency=new)
        if any(each.from_name == new.to_name for each in self.kept):
            raise QueryFailed("conflict", "it would close a cycle of templates")
        self.kept.append(new)
        return AddedDependency(created=True, dependency=new)

    async def _remove(self, query: RemoveDependency) -> RemovedDependencies:
        rest = [
            each
            for each in self.kept
            if (each.from_name, each.to_name) != (query.reference, query.to)
            or query.edge_type not in (None, each.edge_type)
        ]
        removed = len(self.kept) - len(rest)
        if not removed:
            raise QueryFailed("not_found", f"{query.reference} has no dependency on {query.to}")
        self.kept = rest
        return RemovedDependencies(removed=removed)

    async def _list(self, query: ListDependencies) -> DependencyPage:
        one = await self._of(query.scope, query.reference)
        found = [
            each
            for each in self.kept
            if (query.direction != "in" and each.from_capability_id == one.capability_id)
            or (query.direction != "out" and each.to_capability_id == one.capability_id)
        ]
        page = found[query.offset : query.offset + query.limit]
        return DependencyPage(
            capability_id=one.capability_id, dependencies=tuple(page), total=len(found)
        )

    async def _show(self, query: ShowHypergraph) -> Hypergraph:
        self.asked.append(query)
        ends = {str(each.from_capability_id): each.from_name for each in self.kept}
        ends |= {str(each.to_capability_id): each.to_name for each in self.kept}
        return Hypergraph(
            nodes=tuple(
                GraphNode(id=end, kind="capability", name=name, pagerank=0.5, community=0)
                for end, name in ends.items()
            ),
            edges=tuple(map(_edge, self.kept)),
            hyperedges=(),
            total_nodes=len(ends),
            total_edges=len(self.kept),
            communities=1,
            complete=True,
        )

    async def _path(self, query: FindPath) -> GraphPath:
        self.asked.append(query)
        found = [each for each in self.kept if (each.from_name, each.to_name) == _ends(query)]
        if not found:
            raise QueryFailed("not_found", f"no path leads from {query.start} to {query.end}")
        return GraphPath(nodes=(), edges=tuple(map(_edge, found)), length=2.0)


def _ends(query: FindPath) -> tuple[str, str]:
    return query.start, query.end


def _edge(of: Dependency) -> GraphEdge:
    return GraphEdge(
        from_=str(of.from_capability_id),
        to=str(of.to_capability_id),
        type=of.edge_type,
        source=of.edge_source,
        weight=0.5,
    )
