"""Parts shared by all routes: callers, error responses, strict JSON bodies."""

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response, Security
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from pydantic_core import from_json
from starlette.exceptions import HTTPException
from typing_extensions import override

from pml_common.contracts.cursors import PlaceCursor
from pml_gateway.domain.api.approver import SCHEME
from pml_gateway.domain.api.request import MAX_OFFSET
from pml_gateway.entrypoints.http.errors import ErrorResponse
from pml_gateway.ports import Approvers, Caller, Callers

CallerOf = Callable[[Request], Awaitable[Caller]]

Offset = Annotated[int, Query(ge=0, lt=MAX_OFFSET)]
"""Number of entries of a list before its page."""

ListCursor = Annotated[
    PlaceCursor | None,
    Query(description="`next_cursor` of the page before; none for the first, nor with `offset`."),
]

_ERROR = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorResponse"}}}
"""The body of an error. FastAPI builds an adapter for each `model` of each route: so one of them
brings the schema, and the others refer to it."""

ERRORS: dict[int | str, dict[str, Any]] = {
    403: {"content": _ERROR, "description": "The Host or Origin header is not allowed."},
    405: {"content": _ERROR, "description": "The path does not allow this method."},
    413: {"content": _ERROR, "description": "The body is too large."},
    422: {"content": _ERROR, "description": "The request is invalid."},
    500: {"model": ErrorResponse, "description": "An error of the gateway; its log has more."},
    503: {"content": _ERROR, "description": "A dependency does not respond."},
}
NOT_FOUND: dict[int | str, dict[str, Any]] = {
    404: {"content": _ERROR, "description": "Not found in the caller's scope."}
}
CONFLICT: dict[int | str, dict[str, Any]] = {
    409: {"content": _ERROR, "description": "Conflicts with the current state."}
}
GONE: dict[int | str, dict[str, Any]] = {
    410: {"content": _ERROR, "description": "The workflow's data was deleted."}
}
TOO_MANY: dict[int | str, dict[str, Any]] = {
    429: {
        "content": _ERROR,
        "description": "Too many executions are queued; nothing was accepted. A request with a "
        "known `idempotency_key` never gets this.",
        "headers": {
            "Retry-After": {
                "description": "Seconds to wait before the next attempt.",
                "schema": {"type": "integer", "minimum": 1},
            }
        },
    }
}
NOT_APPROVER: dict[int | str, dict[str, Any]] = {
    401: {"content": _ERROR, "description": "The approver's key is missing or wrong."}
}
APPROVERS_KEY = HTTPBearer(
    scheme_name="approver",
    description="The approver's key. `pml up` writes it to a file that only its user can read and "
    "`pml approvals` uses; agents and tool servers never get it.",
    auto_error=False,
)


class StrictRequest(Request):
    """A request whose JSON must not contain NaN, lone surrogates, excessive nesting, or a key twice
    in an object: readers differ in which of them counts."""

    @override
    async def json(self) -> Any:
        """Parse the body. Raises HTTPException 422 with line and column."""
        body = await self.body()
        try:
            found = from_json(body, allow_inf_nan=False)
            json.loads(body, object_pairs_hook=_refuse_doubled)
        except ValueError as error:
            message = f"body: not JSON: {error}"
            raise HTTPException(HTTPStatus.UNPROCESSABLE_ENTITY, message) from error
        return found


def _refuse_doubled(pairs: list[tuple[str, object]]) -> None:
    count = Counter(key for key, _ in pairs)
    if len(count) < len(pairs):
        raise ValueError(f"an object has the key {count.most_common(1)[0][0]!r} twice")


class StrictRoute(APIRoute):
    """A route that parses JSON bodies as StrictRequest does."""

    @override
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_strictly(request: Request) -> Response:
            return await handle(StrictRequest(request.scope, request.receive))

        return handle_strictly


def api_router(tag: str) -> APIRouter:
    """Build a router under `/api` with the common error responses."""
    return APIRouter(prefix="/api", tags=[tag], route_class=StrictRoute, responses=ERRORS)


def caller_of(callers: Callers) -> CallerOf:
    """Build a dependency that identifies the caller."""

    async def identify(request: Request) -> Caller:
        return await callers.identify(request.headers)

    return identify


def approver_of(callers: Approvers) -> CallerOf:
    """Build a dependency that accepts only the approver."""

    async def identify(
        request: Request, _: Annotated[object, Security(APPROVERS_KEY)] = None
    ) -> Caller:
        return await callers.approver(request.headers)

    return identify


def caller_or_approver_of(callers: Approvers) -> CallerOf:
    """Build a dependency that identifies the approver by their key, anybody else as `caller_of`. A
    wrong key is refused: its holder means to be somebody."""

    async def identify(
        request: Request, _: Annotated[object, Security(APPROVERS_KEY)] = None
    ) -> Caller:
        scheme = request.headers.get("authorization", "").partition(" ")[0]
        shown = scheme.lower() == SCHEME
        return await (callers.approver if shown else callers.identify)(request.headers)

    return identify


def with_optional_key(router: APIRouter) -> APIRouter:
    """Describe the approver's key as optional for the routes, whose callers are identified by
    `caller_or_approver_of`; return the router."""
    for route in router.routes:
        if isinstance(route, APIRoute):
            route.openapi_extra = {"security": [{}]}
    return router
