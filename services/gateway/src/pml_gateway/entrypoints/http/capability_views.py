"""GET /api/capabilities/{id or name}/definition and /invocations."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from pml_gateway.application.capability_views import CapabilityViews, Limits, Page
from pml_gateway.domain.api.list_cursors import sole_cursor
from pml_gateway.domain.capability_views.elements import DefinitionView, InvocationsView
from pml_gateway.entrypoints.http.routing import (
    NOT_FOUND,
    CallerOf,
    ListCursor,
    Offset,
    api_router,
)
from pml_gateway.ports import Caller

NodeLimit = Annotated[int, Query(ge=1, le=2000)]
EdgeLimit = Annotated[int, Query(ge=0, le=5000)]


def capability_view_routes(views: CapabilityViews, caller_of: CallerOf) -> APIRouter:
    """Routes that draw capabilities, as elements for Cytoscape."""
    router = api_router("capabilities")

    @router.get(
        "/capabilities/{reference}/definition",
        operation_id="draw_definition",
        responses=NOT_FOUND,
    )
    async def draw_definition(
        reference: str,
        caller: Annotated[Caller, Depends(caller_of)],
        node_limit: NodeLimit = 500,
        edge_limit: EdgeLimit = 1000,
    ) -> DefinitionView:
        """Draw the structure of a capability: each tool and capability that it calls as one node,
        with `contains`, `provides` and `dependency` edges."""
        return await views.definition(caller, reference, Limits(node_limit, edge_limit))

    @router.get(
        "/capabilities/{reference}/invocations",
        operation_id="draw_invocations",
        responses=NOT_FOUND,
    )
    async def draw_invocations(
        reference: str,
        caller: Annotated[Caller, Depends(caller_of)],
        limit: Annotated[int, Query(ge=1, le=50)] = 10,
        offset: Offset = 0,
        cursor: ListCursor = None,
        node_limit: NodeLimit = 500,
        edge_limit: EdgeLimit = 1000,
    ) -> InvocationsView:
        """Draw the newest `limit` runs of a capability: each run and each call in it as a node with
        its times, inside the run or capability that called it, with `sequence` edges between calls
        that did not overlap."""
        page = Page(limit, offset, sole_cursor(cursor, offset))
        return await views.invocations(caller, reference, page, Limits(node_limit, edge_limit))

    return router
