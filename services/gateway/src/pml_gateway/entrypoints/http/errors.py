"""Errors over REST, all of the form `{"error": {"kind", "message", …}}`."""

import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import cast

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Match

from pml_common.contracts.fault_words import field_of
from pml_gateway.application.dependency_errors import DEPENDENCY_ERRORS, api_error
from pml_gateway.domain.api.errors import (
    Busy,
    Conflict,
    Forbidden,
    Gone,
    InvalidRequest,
    NotFound,
    Unauthorized,
    Unavailable,
)
from pml_gateway.domain.api.faults import in_words

log = logging.getLogger(__name__)

RETRY_AFTER_S = 2

_METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")

_KINDS = {
    HTTPStatus.UNAUTHORIZED: "unauthorized",
    HTTPStatus.FORBIDDEN: "forbidden",
    HTTPStatus.NOT_FOUND: "not_found",
    HTTPStatus.METHOD_NOT_ALLOWED: "method_not_allowed",
    HTTPStatus.CONFLICT: "conflict",
    HTTPStatus.GONE: "gone",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "too_large",
    HTTPStatus.UNPROCESSABLE_ENTITY: "invalid_request",
    HTTPStatus.TOO_MANY_REQUESTS: "busy",
    HTTPStatus.SERVICE_UNAVAILABLE: "unavailable",
    HTTPStatus.INTERNAL_SERVER_ERROR: "internal",
}


class FieldProblem(BaseModel):
    """A problem with one field; `field` is its dotted name."""

    field: str
    message: str


class Problem(BaseModel):
    """The error, and how to fix it; `fields` lists the invalid fields of a request."""

    kind: str
    message: str
    fields: list[FieldProblem] = []


class ErrorResponse(BaseModel):
    """The form of every error."""

    error: Problem


def problem(
    status: int,
    message: str,
    fields: Sequence[FieldProblem] = (),
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """Build an error response."""
    kind = _KINDS.get(HTTPStatus(status), HTTPStatus(status).phrase.lower().replace(" ", "_"))
    content: dict[str, object] = {"kind": kind, "message": message}
    if fields:
        content["fields"] = [field.model_dump() for field in fields]
    return JSONResponse({"error": content}, status_code=status, headers=headers)


def add_error_handlers(app: FastAPI) -> None:
    """Make every error respond in the common form."""
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http)
    app.add_exception_handler(Exception, _on_bug)
    known = (Busy, Conflict, Forbidden, InvalidRequest, NotFound, Unauthorized, Unavailable)
    for kind in (*known, *DEPENDENCY_ERRORS):
        app.add_exception_handler(kind, _on_known)


async def _on_known(request: Request, raised: Exception) -> JSONResponse:
    error = api_error(raised)
    match error:
        case InvalidRequest():
            at = error.field
            fields = [] if at is None else [FieldProblem(field=at, message=str(error))]
            return problem(HTTPStatus.UNPROCESSABLE_ENTITY, str(error), fields)
        case Gone():
            return problem(HTTPStatus.GONE, str(error))
        case NotFound():
            return problem(HTTPStatus.NOT_FOUND, str(error))
        case Conflict():
            return problem(HTTPStatus.CONFLICT, str(error))
        case Unauthorized():
            challenge = {"WWW-Authenticate": 'Bearer realm="approver"'}
            return problem(HTTPStatus.UNAUTHORIZED, str(error), headers=challenge)
        case Forbidden():
            return problem(HTTPStatus.FORBIDDEN, str(error))
        case Busy():
            retry = {"Retry-After": str(error.retry_after_s)}
            return problem(HTTPStatus.TOO_MANY_REQUESTS, str(error), headers=retry)
        case Unavailable():
            retry = {"Retry-After": str(RETRY_AFTER_S)}
            return problem(HTTPStatus.SERVICE_UNAVAILABLE, str(error), headers=retry)
        case _:
            return await _on_bug(request, error)


async def _on_invalid(_: Request, raised: Exception) -> JSONResponse:
    errors = cast(RequestValidationError, raised).errors()
    fields = [_field_problem(one) for one in cast(Sequence[Mapping[str, object]], errors)]
    message = "; ".join(dict.fromkeys(f"{one.field}: {one.message}" for one in fields))
    return problem(HTTPStatus.UNPROCESSABLE_ENTITY, message, fields)


def _field_problem(error: Mapping[str, object]) -> FieldProblem:
    location = cast(Sequence[object], error["loc"])
    field = field_of(location[1:]) or str(location[0])
    if isinstance(error.get("input"), bytes):
        return FieldProblem(field=field, message="send JSON with Content-Type: application/json")
    return FieldProblem(field=field, message=in_words(error))


async def _on_http(request: Request, raised: Exception) -> JSONResponse:
    error = cast(HTTPException, raised)
    messages = {
        HTTPStatus.NOT_FOUND: f"no route {request.url.path}; see /docs",
        HTTPStatus.METHOD_NOT_ALLOWED: f"{request.url.path} does not allow {request.method}",
    }
    detail = error.detail if error.detail != HTTPStatus(error.status_code).phrase else ""
    message = detail or messages.get(HTTPStatus(error.status_code), error.detail)
    headers = dict(error.headers or {})
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        headers["Allow"] = ", ".join(_allowed(request))
    return problem(error.status_code, message, headers=headers)


def _allowed(request: Request) -> Sequence[str]:
    """Return the methods of all routes of a path: the router names those of the first alone."""
    routes = cast(FastAPI, request.app).router.routes
    scopes = {method: {**request.scope, "method": method} for method in _METHODS}
    return [
        method
        for method, scope in scopes.items()
        if any(route.matches(scope)[0] is Match.FULL for route in routes)
    ]


async def _on_bug(request: Request, raised: Exception) -> JSONResponse:
    log.error("%s %s failed", request.method, request.url.path, exc_info=raised)
    message = "internal error of the gateway; see its log"
    return problem(HTTPStatus.INTERNAL_SERVER_ERROR, message)
