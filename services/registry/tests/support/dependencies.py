"""Drives the dependency and graph handlers."""

from collections.abc import Mapping, Sequence
from typing import Literal
from uuid import uuid4

from pml_common.bus.port import Handled
from pml_common.contracts import ids
from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.base import Message
from pml_common.contracts.capability import CapabilityRecord
from pml_common.contracts.dependencies import (
    AddDependency,
    AddedDependency,
    DependencyPage,
    DependencyType,
    Direction,
    EdgeSource,
    FindPath,
    GraphPath,
    Hypergraph,
    ListDependencies,
    RemoveDependency,
    ShowHypergraph,
)
from pml_common.contracts.learner import EdgesObserved, ObservedCall
from pml_common.contracts.registry import CapabilityChanged, ResolveCapability
from pml_common.contracts.scope import Scope
from pml_common.contracts.structure import CapabilityNode
from pml_registry.application.graphs import GraphChanges, Provides, ScopeGraphs
from pml_registry.application.relations import Relations
from pml_registry.entrypoints.bus.on_capability_changed import on_capability_listed
from pml_registry.entrypoints.bus.on_dependencies import (
    on_add_dependency,
    on_list_dependencies,
    on_remove_dependency,
)
from pml_registry.entrypoints.bus.on_edges_observed import on_edges_observed
from pml_registry.entrypoints.bus.on_graph_queries import on_find_path, on_show_hypergraph
from pml_registry.entrypoints.bus.on_resolve_capability import on_resolve_capability
from pml_registry.ports.vectors import Embedder
from services.registry.tests.support.builders import NOON, SCOPE, analysed, learning_update
from services.registry.tests.support.store_driver import StoreDriver, published
from services.registry.tests.support.stores import Stores


def code(letter: str) -> str:
    """A code hash."""
    return letter * 64


class GraphDriver:
    """Handles events and queries about relations."""

    def __init__(self, stores: Stores, embedder: Embedder) -> None:
        self.stores = stores
        self.registry = StoreDriver(stores, embedder)
        self.said: list[Message] = []
        self.now = NOON
        self.graphs = ScopeGraphs(stores.graph)
        self.changes = GraphChanges(self.graphs, self._publish)
        self.provides = Provides(stores.graph, self.changes)
        self.relations = Relations(stores.dependencies, embedder, stores.index)

    async def _publish(self, message: Message) -> None:
        self.said.append(message)

    async def resolve(self, query: ResolveCapability) -> CapabilityRecord:
        """Resolve as the registry does."""
        return await on_resolve_capability(query, self.registry.resolution)

    async def has(
        self,
        name: str,
        letter: str,
        *,
        tools: Sequence[str] = ("fs:stat", "fs:read"),
        intent: str | None = None,
        scope: Scope = SCOPE,
    ) -> CapabilityRecord:
        """Make a listed capability."""
        analysis = analysed(code(letter), tools=tools, intent=intent, scope=scope)
        await self.registry.named(name, analysis)
        await self.registry.learned(learning_update(code_hash=code(letter), scope=scope))
        return await self.registry.resolve(name, scope)

    async def pair(self) -> tuple[CapabilityRecord, CapabilityRecord]:
        """Make two capabilities, `ci:deploy` and `ci:build`."""
        deploy = await self.has("ci:deploy", "a", tools=["ci:push"])
        return deploy, await self.has("ci:build", "b", tools=["ci:make"])

    async def add(
        self,
        reference: str,
        to: str,
        edge_type: DependencyType = "dependency",
        edge_source: EdgeSource = "template",
        *,
        scope: Scope = SCOPE,
    ) -> AddedDependency:
        query = AddDependency(
            scope=scope, reference=reference, to=to, edge_type=edge_type, edge_source=edge_source
        )
        return await on_add_dependency(query, self.resolve, self.stores.dependencies, self.changes)

    async def remove(self, reference: str, to: str, edge_type: DependencyType | None = None) -> int:
        query = RemoveDependency(scope=SCOPE, reference=reference, to=to, edge_type=edge_type)
        removed = await on_remove_dependency(
            query, self.resolve, self.stores.dependencies, self.changes
        )
        return removed.removed

    async def page(
        self,
        reference: str,
        direction: Direction = "both",
        *,
        scope: Scope = SCOPE,
        principal: str | None = None,
        limit: int = 100,
        offset: int = 0,
        cursor: str | None = None,
    ) -> DependencyPage:
        query = ListDependencies(
            scope=scope,
            reference=reference,
            direction=direction,
            principal=principal,
            limit=limit,
            offset=offset,
            cursor=cursor,
        )
        return await on_list_dependencies(query, self.resolve, self.stores.dependencies)

    async def edges(
        self, reference: str, direction: Direction = "both"
    ) -> Sequence[tuple[str, str, str]]:
        """Render dependencies: `("ci:deploy>ci:build", "contains", "observed")`."""
        page = await self.page(reference, direction)
        found = [
            (f"{each.from_name}>{each.to_name}", each.edge_type, each.edge_source)
            for each in page.dependencies
        ]
        assert page.total == len(found)
        return sorted(found)

    async def observe(self, *messages: EdgesObserved) -> Handled:
        stores = self.stores
        return await on_edges_observed(
            messages, stores.shown, stores.dependencies, lambda: self.now
        )

    async def listed(self, *records: CapabilityRecord) -> Sequence[Message]:
        """Say that capabilities were listed; return what is published."""
        return await self.changed("listed", *records)

    async def changed(
        self, change: Literal["listed", "learned"], *records: CapabilityRecord
    ) -> Sequence[Message]:
        """Say that capabilities changed; return what is published."""
        said = [_changed(record, change) for record in records]
        return published(await on_capability_listed(said, self.relations), said)

    async def hypergraph(
        self, *, limit: int = 500, edge_limit: int = 500, principal: str | None = None
    ) -> Hypergraph:
        query = ShowHypergraph(scope=SCOPE, limit=limit, edge_limit=edge_limit, principal=principal)
        return await on_show_hypergraph(query, self.graphs)

    async def path(self, start: str, end: str) -> GraphPath:
        query = FindPath(scope=SCOPE, start=start, end=end)
        return await on_find_path(query, self.graphs, self.resolve)


def _changed(record: CapabilityRecord, change: Literal["listed", "learned"]) -> CapabilityChanged:
    return CapabilityChanged(
        scope=record.scope,
        event_id=uuid4(),
        capability_id=record.capability_id,
        name=record.name,
        change=change,
    )


def calls(
    *pairs: tuple[str, str], runs: int = 1, scope: Scope = SCOPE, cohort: int = 0
) -> EdgesObserved:
    """Build the event of runs in which programs, by the letters of their codes, called others."""
    workflow_id = uuid4()
    (first, _), *_ = pairs
    return EdgesObserved(
        scope=scope,
        event_id=ids.effect_id(workflow_id, "edges-observed"),
        capability_id=ids.capability_id(scope, code(first)),
        workflow_id=workflow_id,
        edges=(),
        calls=tuple(
            ObservedCall(
                from_capability_id=ids.capability_id(scope, code(one)),
                to_capability_id=ids.capability_id(scope, code(other)),
                count=runs,
            )
            for one, other in pairs
        ),
        runs=runs,
        cohort=cohort,
    )


def calling(analysis: ExecutionAnalyzed, called: Mapping[str, str]) -> ExecutionAnalyzed:
    """Return an analysis whose program also calls capabilities: names by letters of their codes."""
    nodes = [
        CapabilityNode(
            id=f"n{at}",
            line=at,
            column=1,
            name=name,
            capability_id=str(ids.capability_id(analysis.scope, code(letter))),
        )
        for at, (letter, name) in enumerate(called.items(), 20)
    ]
    structure = analysis.structure.model_copy(update={"nodes": (*analysis.structure.nodes, *nodes)})
    return analysis.model_copy(update={"structure": structure})
