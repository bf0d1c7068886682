"""GET /api/workflows and /api/workflows/{id}."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Query

from pml_gateway.domain.views import WorkflowPage, WorkflowView, view_of
from pml_gateway.handlers.decide import unknown
from pml_gateway.handlers.http_callers import NO_SUCH, CallerOf, api_router
from pml_gateway.ports import Caller, WorkflowStore


def workflow_routes(workflows: WorkflowStore, caller_of: CallerOf) -> APIRouter:
    """Look at workflows."""
    router = api_router("workflows")

    @router.get("/workflows", operation_id="list_workflows")
    async def list_workflows(
        caller: Annotated[Caller, Depends(caller_of)],
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
        offset: Annotated[int, Query(ge=0)] = 0,
    ) -> WorkflowPage:
        """Workflows, newest first."""
        return await workflows.page(caller.scope, limit, offset)

    @router.get("/workflows/{workflow_id}", operation_id="get_workflow", responses=NO_SUCH)
    async def get_workflow(
        workflow_id: UUID, caller: Annotated[Caller, Depends(caller_of)]
    ) -> WorkflowView:
        """One workflow with all that is known of it."""
        found = await workflows.get(caller.scope, workflow_id)
        if found is None:
            raise unknown(caller.scope, workflow_id)
        return view_of(found)

    return router
