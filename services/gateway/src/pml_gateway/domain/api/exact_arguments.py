"""Values of requests that a program would get as others."""

from typing import cast

from pydantic import JsonValue

from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.api.api import ExecuteRequest
from pml_gateway.domain.api.errors import InvalidRequest
from pml_gateway.domain.tool_calls.exact_integers import inexact_integer


def require_exact_integers(request: ExecuteRequest) -> None:
    """Raise InvalidRequest, which names the field, where a program would get another integer than
    was sent."""
    given: JsonObject = {"args": request.args, "context": request.context}
    if request.dry_run_mocks is not None:
        given["dry_run_mocks"] = cast(JsonValue, request.dry_run_mocks)
    if request.dag is not None or request.tool is not None:
        given |= request.model_dump(mode="json", include={"dag", "tool"}, exclude_none=True)
    found = inexact_integer(given)
    if found is not None:
        field, integer = found
        raise InvalidRequest(
            field,
            f"is {integer}, which no program can represent exactly (the limit is 2^53-1): send its "
            "digits as a string",
        )
