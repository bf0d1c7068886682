"""Values of requests that a program would get as others."""

from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.api.errors import InvalidRequest
from pml_gateway.domain.tool_calls.exact_integers import inexact_integer


def require_exact_integers(given: JsonObject) -> None:
    """Raise InvalidRequest, which names the field, where a program would get another integer than
    was sent."""
    found = inexact_integer(given)
    if found is not None:
        field, integer = found
        raise InvalidRequest(
            field,
            f"is {integer}, which no program can represent exactly (the limit is 2^53-1): send its "
            "digits as a string",
        )
