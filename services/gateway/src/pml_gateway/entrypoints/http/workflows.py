"""GET /api/workflows and /api/workflows/{id}."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Query

from pml_gateway.application.workflow_service import no_such_workflow
from pml_gateway.domain.api.errors import Conflict
from pml_gateway.domain.api.views import WorkflowPage, WorkflowView, view_of
from pml_gateway.domain.sources.dag_trace import DagView
from pml_gateway.domain.sources.dag_trace import view_of as dag_view
from pml_gateway.entrypoints.http.callers import CONFLICT, NOT_FOUND, CallerOf, api_router
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

    @router.get("/workflows/{workflow_id}", operation_id="get_workflow", responses=NOT_FOUND)
    async def get_workflow(
        workflow_id: UUID, caller: Annotated[Caller, Depends(caller_of)]
    ) -> WorkflowView:
        """One workflow with all that is known of it."""
        found = await workflows.get(caller.scope, workflow_id)
        if found is None:
            raise no_such_workflow(caller.scope, workflow_id)
        return view_of(found)

    @router.get(
        "/workflows/{workflow_id}/dag",
        operation_id="get_workflow_dag",
        responses={**NOT_FOUND, **CONFLICT},
    )
    async def get_workflow_dag(
        workflow_id: UUID, caller: Annotated[Caller, Depends(caller_of)]
    ) -> DagView:
        """What a workflow did as a DAG of its calls, that can be run again as one."""
        found = await workflows.get(caller.scope, workflow_id)
        if found is None:
            raise no_such_workflow(caller.scope, workflow_id)
        if found.run is None:
            raise Conflict(f"workflow {workflow_id} has not run to an end: it has no DAG")
        structure = found.analysis.structure if found.analysis else None
        calls, args = found.run.task_results, found.requested.args
        return dag_view(workflow_id, calls, structure, args)

    return router
