"""Handles `show-hypergraph` and `find-path`."""

from pml_common.bus.errors import QueryFailed
from pml_common.contracts.dependencies import FindPath, GraphPath, Hypergraph, ShowHypergraph
from pml_common.contracts.references import PREFIX
from pml_common.contracts.registry import ResolveCapability
from pml_registry.application.graphs import ScopeGraphs
from pml_registry.domain.graph import NoPath, ScopeGraph
from pml_registry.entrypoints.bus.on_dependencies import Resolve


async def on_show_hypergraph(query: ShowHypergraph, graphs: ScopeGraphs) -> Hypergraph:
    """Return the most important part of the scope's graph."""
    graph = await graphs.graph(query.scope)
    return graph.shown(query)


async def on_find_path(query: FindPath, graphs: ScopeGraphs, resolve: Resolve) -> GraphPath:
    """Return the shortest path between two nodes. Raises QueryFailed `not_found`."""
    graph = await graphs.graph(query.scope)
    start = await _node(query, query.start, graph, resolve)
    end = await _node(query, query.end, graph, resolve)
    try:
        return graph.path(start, end, query.principal)
    except NoPath as error:
        raise QueryFailed(
            "not_found", f"no path leads from {query.start} to {query.end}"
        ) from error


async def _node(query: FindPath, text: str, graph: ScopeGraph, resolve: Resolve) -> str:
    """Return the node of a tool's id, or of a capability's id or name; a tool goes before a
    capability of the same name, unless that has the prefix `cap:`."""
    if not text.startswith(PREFIX) and text in graph:
        return text
    asked = ResolveCapability(scope=query.scope, reference=text, principal=query.principal)
    record = await resolve(asked)
    if str(record.capability_id) not in graph:
        raise QueryFailed("not_found", f"{record.name} is not in the graph: it is not listed")
    return str(record.capability_id)
