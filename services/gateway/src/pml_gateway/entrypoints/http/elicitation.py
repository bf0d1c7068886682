"""GET and POST /api/approvals/elicitation."""

from typing import Annotated

from fastapi import APIRouter, Depends

from pml_gateway.application.elicit import Elicitations
from pml_gateway.domain.api.elicitation import ElicitationSetting, SetElicitation
from pml_gateway.entrypoints.http.routing import NOT_APPROVER, CallerOf, api_router
from pml_gateway.ports import Caller


def elicitation_routes(
    elicitations: Elicitations, caller_of: CallerOf, approver_of: CallerOf
) -> APIRouter:
    """Routes that read and set whether clients may have their users decide approvals."""
    router = api_router("approvals")

    @router.get("/approvals/elicitation", operation_id="show_elicitation")
    async def show_elicitation(
        caller: Annotated[Caller, Depends(caller_of)],
    ) -> ElicitationSetting:
        """Show whether forms that are answered over the agent's connection decide its approvals,
        and who has set that."""
        return await elicitations.setting(caller)

    @router.post("/approvals/elicitation", operation_id="set_elicitation", responses=NOT_APPROVER)
    async def set_elicitation(
        body: SetElicitation,
        caller: Annotated[Caller, Depends(caller_of)],
        approver: Annotated[Caller, Depends(approver_of)],
    ) -> ElicitationSetting:
        """Let forms that are answered over the agent's connection decide its approvals, or not; at
        once, and until it is set again."""
        return await elicitations.set(caller, approver.principal, may_elicit=body.may_elicit)

    return router
