"""JSON bodies, read strictly: what is not exactly JSON is said to be so, and where."""

from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic_core import from_json
from starlette.exceptions import HTTPException


class StrictRequest(Request):
    """A request whose JSON has no NaN, no lone surrogates, no bottomless nesting."""

    async def json(self) -> Any:
        """The body. Raises HTTPException 422 with line and column."""
        try:
            return from_json(await self.body(), allow_inf_nan=False)
        except ValueError as error:
            message = f"body: not JSON: {error}"
            raise HTTPException(HTTPStatus.UNPROCESSABLE_ENTITY, message) from error


class StrictRoute(APIRoute):
    """A route that reads JSON strictly."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Wrap the request."""
        handle = super().get_route_handler()

        async def handle_strictly(request: Request) -> Response:
            return await handle(StrictRequest(request.scope, request.receive))

        return handle_strictly
