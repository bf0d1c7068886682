"""What every route shares: who asks, and how a router is made."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import APIRouter, Request, Security
from fastapi.security import HTTPBearer

from pml_gateway.entrypoints.http.body import StrictRoute
from pml_gateway.entrypoints.http.errors import ErrorAnswer
from pml_gateway.ports import Approvers, Caller, Callers

CallerOf = Callable[[Request], Awaitable[Caller]]

ERRORS: dict[int | str, dict[str, Any]] = {
    422: {"model": ErrorAnswer, "description": "The request does not fit."},
    503: {"model": ErrorAnswer, "description": "A part we depend on does not answer."},
}
NOT_FOUND: dict[int | str, dict[str, Any]] = {
    404: {"model": ErrorAnswer, "description": "There is no such thing in your scope."}
}
CONFLICT: dict[int | str, dict[str, Any]] = {
    409: {"model": ErrorAnswer, "description": "It does not fit how things stand."}
}
TOO_MANY: dict[int | str, dict[str, Any]] = {
    429: {
        "model": ErrorAnswer,
        "description": "Too many executions wait to begin; nothing was accepted. A request whose "
        "`idempotency_key` is known is never refused so.",
        "headers": {
            "Retry-After": {
                "description": "Seconds until it is worth trying again.",
                "schema": {"type": "integer", "minimum": 1},
            }
        },
    }
}


NOT_APPROVER: dict[int | str, dict[str, Any]] = {
    401: {"model": ErrorAnswer, "description": "Only who shows the approver's key may decide."}
}
APPROVERS_KEY = HTTPBearer(
    scheme_name="approver",
    description="The approver's key. `pml up` writes it to a file of its user's own, which "
    "`pml approvals` reads; no agent and no tool server is given it.",
    auto_error=False,
)


def api_router(tag: str) -> APIRouter:
    """A router of ours."""
    return APIRouter(prefix="/api", tags=[tag], route_class=StrictRoute, responses=ERRORS)


def caller_of(callers: Callers) -> CallerOf:
    """A dependency that tells who asks."""

    async def identify(request: Request) -> Caller:
        return await callers.identify(request.headers)

    return identify


def approver_of(callers: Approvers) -> CallerOf:
    """A dependency that lets only those in who may decide."""

    async def identify(
        request: Request, _: Annotated[object, Security(APPROVERS_KEY)] = None
    ) -> Caller:
        return await callers.approver(request.headers)

    return identify
