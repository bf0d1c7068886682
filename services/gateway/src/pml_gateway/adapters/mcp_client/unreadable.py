"""Lines of a stdio server that are no messages, and the requests that they answer."""

import json
import re
from collections.abc import Collection
from typing import Final

from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, RequestId
from pydantic import JsonValue, TypeAdapter, ValidationError

from pml_common.contracts.fault_words import field_of, words_of

_JSON: Final[TypeAdapter[JsonValue]] = TypeAdapter(JsonValue)
_ID: Final = r'"id"\s*:\s*(?P<id>-?\d+|"[^"\\]*")'
_VERSION: Final = r'"jsonrpc"\s*:\s*"2\.0"\s*,\s*'
_BEGINNING: Final = re.compile(rf'\s*\{{\s*(?:{_VERSION})?{_ID}\s*,\s*"(?:result|error)"')
_WHOLE: Final = re.compile(
    rf'\s*\{{\s*(?:{_VERSION})?"(?:result|error)".*,\s*{_ID}\s*(?:,\s*"jsonrpc"[^}}]*)?\}}\s*',
    re.DOTALL,
)
"""A response whose id comes first, and one whose id comes last: the usual orders. Between them the
id may be part of a result."""


def answer_to(
    line: bytes, fault: ValidationError, waiting: Collection[RequestId]
) -> JSONRPCError | None:
    """Return the error response in place of a line that is no message; None where it cannot be
    related to a waiting request."""
    request_id = _id_in(line.decode(errors="replace"))
    if request_id not in waiting or isinstance(request_id, bool):
        return None
    message = f"its answer is no JSON-RPC message: {_why(fault)}"
    error = ErrorData(code=PARSE_ERROR, message=message)
    return JSONRPCError(jsonrpc="2.0", id=request_id, error=error)


def _why(fault: ValidationError) -> str:
    """Return the fault of a line that should be a response."""
    faults = fault.errors(include_url=False, include_input=False)
    of_response = (each for each in faults if each["loc"][:1] == ("JSONRPCResponse",))
    told = next(of_response, faults[0])
    field, words = field_of(told["loc"][1:]), words_of({**told})
    return f"{field}: {words}" if field else f"it {words}"


def _id_in(text: str) -> RequestId | None:
    """Return the id of the request that a text answers, as far as it can be told."""
    try:
        # More than pydantic accepts: lone surrogates, NaN.
        message = _JSON.validate_python(json.loads(text))
    except (ValueError, RecursionError):
        found = _BEGINNING.match(text) or _WHOLE.fullmatch(text)
        return None if found is None else json.loads(found["id"])
    if not isinstance(message, dict) or "method" in message:
        return None
    found = message.get("id")
    return found if isinstance(found, int | str) else None
