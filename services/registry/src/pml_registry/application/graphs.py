"""The graphs of scopes in memory, and the provides edges in them."""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final
from uuid import UUID, uuid4
from weakref import WeakValueDictionary

from pml_common.bus.errors import BusUnavailable
from pml_common.contracts import ids
from pml_common.contracts.base import Message
from pml_common.contracts.dependencies import GraphChanged
from pml_common.contracts.scope import Scope
from pml_registry.domain.graph import MOST_EDGES, MOST_NODES, GraphRows, ScopeGraph
from pml_registry.domain.provides import provides_change
from pml_registry.ports.graph import GraphStore

log = logging.getLogger(__name__)

MOST_SCOPES: Final = 16
"""Graphs that are kept, the last used."""

MAX_AGE_S: Final = 30.0
"""For how long a graph is kept at most: the message about a change may be lost."""

_MOST_PASSES: Final = 200
_MOST_SCOPES_AT_ONCE: Final = 20


class ScopeGraphs:
    """Builds the graph of a scope when it is asked for, and keeps it until it changes."""

    def __init__(
        self,
        store: GraphStore,
        *,
        most_scopes: int = MOST_SCOPES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._most_scopes = most_scopes
        self._clock = clock
        self._kept: OrderedDict[Scope, tuple[float, ScopeGraph]] = OrderedDict()
        self._outdated: dict[Scope, bool] = {}
        """Of each graph that is being built, whether it has changed since."""
        self._locks: WeakValueDictionary[Scope, asyncio.Lock] = WeakValueDictionary()

    async def graph(self, scope: Scope) -> ScopeGraph:
        """Return the graph of a scope; concurrent callers share one. Raises StorageUnavailable."""
        lock = self._locks.setdefault(scope, asyncio.Lock())
        async with lock:
            if (known := self._kept.get(scope)) and self._clock() - known[0] < MAX_AGE_S:
                self._kept.move_to_end(scope)
                return known[1]
            return await self._build(scope)

    async def _build(self, scope: Scope) -> ScopeGraph:
        self._outdated[scope] = False
        try:
            began = self._clock()
            rows = await self._store.rows(scope, MOST_NODES, MOST_EDGES)
            graph = await asyncio.to_thread(_computed, rows)
            if not self._outdated[scope]:
                self._kept[scope] = (began, graph)
                self._kept.move_to_end(scope)
        finally:
            del self._outdated[scope]
        while len(self._kept) > self._most_scopes:
            self._kept.popitem(last=False)
        return graph

    def drop(self, scope: Scope) -> None:
        """Build the graph anew when it is asked for next."""
        self._kept.pop(scope, None)
        if scope in self._outdated:
            self._outdated[scope] = True


def _computed(rows: GraphRows) -> ScopeGraph:
    """Compute everything that takes long."""
    graph = ScopeGraph(rows)
    _ = graph.ranks, graph.communities
    return graph


def graph_changed(scope: Scope, cause_id: UUID) -> GraphChanged:
    """Build the message; one cause has one."""
    event_id = ids.effect_id(cause_id, "graph-changed")
    return GraphChanged(scope=scope, event_id=event_id, cause_id=cause_id)


@dataclass(frozen=True)
class GraphChanges:
    """Makes every replica drop the graph of a scope."""

    graphs: ScopeGraphs
    publish: Callable[[Message], Awaitable[object]]

    async def announce(self, scope: Scope) -> None:
        """Drop the graph here at once, and have the other replicas do so; one that does not hear of
        it keeps its own for MAX_AGE_S at most."""
        self.graphs.drop(scope)
        try:
            await self.publish(graph_changed(scope, uuid4()))
        except BusUnavailable as error:
            log.warning("%s: other replicas are not told of a changed graph: %s", scope, error)


@dataclass(frozen=True)
class Provides:
    """Keeps the provides edges of catalogs up to date."""

    store: GraphStore
    changes: GraphChanges

    async def refresh(self, scope: Scope) -> None:
        """Compare every tool whose definition has changed with all others of its scope. A
        repetition changes nothing. Raises StorageUnavailable."""
        for _ in range(_MOST_PASSES):
            change = await self.store.refresh_provides(scope, provides_change)
            if change is None:
                return
            if change.left_out:
                log.warning(
                    "%s: %d tools have no provides edges: there are too many",
                    scope,
                    change.left_out,
                )

    async def catch_up(self) -> None:
        """Refresh scopes whose changes were missed, or made before there were provides edges."""
        for scope in await self.store.stale_scopes(_MOST_SCOPES_AT_ONCE):
            await self.refresh(scope)
            await self.changes.announce(scope)
