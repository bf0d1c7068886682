"""Views of capabilities, from what the registry and the learner know."""

import asyncio
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from pml_common.bus.port import QueryClient
from pml_common.contracts import catalog
from pml_common.contracts.capability import CapabilityRecord
from pml_common.contracts.dependencies import DependencyPage, ListDependencies
from pml_common.contracts.learner import ExecutionTrace, ListTraces, TracePage
from pml_common.contracts.registry import ResolveCapability
from pml_gateway.domain.capability_views.definition import definition_of
from pml_gateway.domain.capability_views.elements import DefinitionView, InvocationsView
from pml_gateway.domain.capability_views.invocation import callers_of, invocations_of
from pml_gateway.ports import Caller

_MOST_DEPENDENCIES: Final = 500
_MOST_TRACES: Final = 200
"""Traces of one workflow that are read."""


@dataclass(frozen=True)
class Limits:
    """The most nodes and edges of a view."""

    nodes: int
    edges: int


@dataclass(frozen=True)
class Page:
    """The runs of a view, the newest first."""

    limit: int
    offset: int = 0
    cursor: str | None = None


@dataclass(frozen=True)
class CapabilityViews:
    """Draws capabilities that the caller sees. Everything may raise QueryFailed."""

    queries: QueryClient

    async def definition(self, caller: Caller, reference: str, limits: Limits) -> DefinitionView:
        """Draw the definition of a capability, by id or name."""
        record = await self._resolve(caller, reference)
        known = await self._dependencies(caller, record)
        return definition_of(
            record,
            () if known is None else known.dependencies,
            limits.nodes,
            limits.edges,
            complete=known is None or known.next_cursor is None,
        )

    async def invocations(
        self, caller: Caller, reference: str, page: Page, limits: Limits
    ) -> InvocationsView:
        """Draw the runs of a capability, by id or name, in the caller's scope."""
        record = await self._resolve(caller, reference)
        runs = await self.queries.request(
            catalog.LIST_TRACES,
            ListTraces(
                scope=caller.scope,
                capability_id=record.capability_id,
                limit=page.limit,
                offset=page.offset,
                cursor=page.cursor,
            ),
        )
        whole = await asyncio.gather(
            *(self._workflow(caller, each) for each in {run.workflow_id for run in runs.traces})
        )
        others: list[ExecutionTrace] = [trace for each in whole for trace in each.traces]
        return invocations_of(
            record,
            runs,
            callers_of(runs.traces, others),
            limits.nodes,
            limits.edges,
            complete=all(each.next_cursor is None for each in whole),
        )

    async def _resolve(self, caller: Caller, reference: str) -> CapabilityRecord:
        query = ResolveCapability(
            scope=caller.scope, principal=caller.principal, reference=reference
        )
        return await self.queries.request(catalog.RESOLVE_CAPABILITY, query)

    async def _dependencies(
        self, caller: Caller, record: CapabilityRecord
    ) -> DependencyPage | None:
        """Return the dependencies of a capability; None where it is of another scope, which keeps
        them to itself."""
        if record.scope != caller.scope:
            return None
        query = ListDependencies(
            scope=caller.scope,
            principal=caller.principal,
            reference=str(record.capability_id),
            direction="out",
            limit=_MOST_DEPENDENCIES,
        )
        return await self.queries.request(catalog.LIST_DEPENDENCIES, query)

    async def _workflow(self, caller: Caller, workflow_id: UUID) -> TracePage:
        query = ListTraces(scope=caller.scope, workflow_id=workflow_id, limit=_MOST_TRACES)
        return await self.queries.request(catalog.LIST_TRACES, query)
