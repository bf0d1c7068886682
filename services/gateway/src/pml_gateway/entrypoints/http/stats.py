"""GET /api/tools/usage, /api/feedback, /api/speculation and /api/ranking; POST
/api/workflows/{id}/feedback."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Query

from pml_common.bus.port import QueryClient
from pml_common.contracts import catalog
from pml_common.contracts.learner import (
    Feedback,
    FeedbackPage,
    ListFeedback,
    ListToolUsage,
    ToolUsagePage,
)
from pml_common.contracts.uses import EvidenceState, ShowEvidence
from pml_gateway.domain.api.introspection import JudgeRun
from pml_gateway.domain.api.list_cursors import sole_cursor
from pml_gateway.domain.api.speculation_threshold import SpeculationThreshold
from pml_gateway.entrypoints.http.routing import NOT_FOUND, CallerOf, ListCursor, Offset, api_router
from pml_gateway.ports import Caller, Speculations


def stats_routes(
    query_client: QueryClient, speculations: Speculations, caller_of: CallerOf
) -> APIRouter:
    """Routes that read and give evidence of use."""
    router = api_router("stats")

    @router.get("/tools/usage", operation_id="list_tool_usage")
    async def list_tool_usage(
        caller: Annotated[Caller, Depends(caller_of)],
        server_id: Annotated[str | None, Query(min_length=1, max_length=256)] = None,
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
        offset: Offset = 0,
        cursor: ListCursor = None,
    ) -> ToolUsagePage:
        """List how often programs called tools, the most called first. Calls of named capabilities
        by name are under the server `pml-capabilities`."""
        query = ListToolUsage(
            scope=caller.scope,
            server_id=server_id,
            limit=limit,
            offset=offset,
            cursor=sole_cursor(cursor, offset),
        )
        return await query_client.request(catalog.LIST_TOOL_USAGE, query)

    @router.get("/feedback", operation_id="list_feedback")
    async def list_feedback(
        caller: Annotated[Caller, Depends(caller_of)],
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
        offset: Offset = 0,
        cursor: ListCursor = None,
    ) -> FeedbackPage:
        """List how useful the runs of capabilities were found, the most often judged first."""
        query = ListFeedback(
            scope=caller.scope,
            limit=limit,
            offset=offset,
            cursor=sole_cursor(cursor, offset),
        )
        return await query_client.request(catalog.LIST_FEEDBACK, query)

    @router.post(
        "/workflows/{workflow_id}/feedback", operation_id="give_feedback", responses=NOT_FOUND
    )
    async def give_feedback(
        workflow_id: UUID, body: JudgeRun, caller: Annotated[Caller, Depends(caller_of)]
    ) -> Feedback:
        """Store whether the run of a workflow was useful, and return all opinions of its
        capability. Each caller has one opinion of a workflow, the last one given."""
        query = body.query(caller.scope, caller.principal, workflow_id)
        return await speculations.judge(query)

    @router.get("/speculation", operation_id="get_speculation")
    async def get_speculation(
        caller: Annotated[Caller, Depends(caller_of)],
    ) -> SpeculationThreshold:
        """Return the score from which an intent with a context runs a capability, its bounds, and
        the judgements of such runs that moved it."""
        return await speculations.threshold(caller.scope)

    @router.get("/ranking", operation_id="get_ranking")
    async def get_ranking(caller: Annotated[Caller, Depends(caller_of)]) -> EvidenceState:
        """Return whether discovery ranks by what served similar intents, and by how much that is
        better over the last uses."""
        return await query_client.request(catalog.SHOW_EVIDENCE, ShowEvidence(scope=caller.scope))

    return router
