"""JSON-RPC messages of MCP as they pass through the bridge, and the HTTP headers that belong to
them. No message is changed."""

import base64
import json
import re
from collections.abc import Mapping
from typing import Any, Final, cast

Json = dict[str, Any]
RequestId = str | int

UNREACHABLE: Final = -32000
"""Code of the error for a request that reached no gateway, or lost its answer; it is in the range
that JSON-RPC leaves to implementations."""
PARSE_ERROR: Final = -32700

VERSION_HEADER: Final = "mcp-protocol-version"
SESSION_HEADER: Final = "mcp-session-id"

_VERSION_META: Final = "io.modelcontextprotocol/protocolVersion"
_NAMED_BY: Final[Mapping[str, str]] = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
"""Methods whose header `Mcp-Name` repeats a parameter."""
_SENT_AS_IT_IS: Final = re.compile(r"[\x20-\x7E]*")
_ENCODED: Final = re.compile(r"=\?base64\?.*\?=")


def parsed(line: bytes) -> list[Json] | None:
    """Return the messages in a line: one, or those of a batch; None if it is no JSON-RPC."""
    try:
        found: object = json.loads(line)
    except ValueError:
        return None
    each = cast(list[object], found) if isinstance(found, list) else [found]
    if not all(isinstance(one, dict) for one in each):
        return None
    return cast(list[Json], each)


def request_id(message: Json) -> RequestId | None:
    """Return the id of a request; None for notifications and responses."""
    found = message.get("id")
    return found if "method" in message and isinstance(found, str | int) else None


def version_in(message: Json) -> str | None:
    """Return the protocol version that a message names; it does since 2026-07-28."""
    meta = _params(message).get("_meta")
    found = cast(Json, meta).get(_VERSION_META) if isinstance(meta, dict) else None
    return found if isinstance(found, str) else None


def headers_of(message: Json, version: str | None, session: str | None) -> dict[str, str]:
    """Return the HTTP headers of a message in a session of this negotiated version."""
    headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    own, method = version_in(message), message.get("method")
    if own is not None and isinstance(method, str):
        headers |= {VERSION_HEADER: own, "mcp-method": method}
        name = _params(message).get(_NAMED_BY.get(method, ""))
        return headers | ({"mcp-name": _header_value(name)} if isinstance(name, str) else {})
    if method != "initialize":
        headers |= {VERSION_HEADER: version} if version else {}
        headers |= {SESSION_HEADER: session} if session else {}
    return headers


def cancelled_request(message: Json) -> RequestId | None:
    """Return the id of the request that a notification cancels."""
    if message.get("method") != "notifications/cancelled":
        return None
    found = _params(message).get("requestId")
    return found if isinstance(found, str | int) else None


def error_answer(to: RequestId | None, message: str, code: int = UNREACHABLE) -> Json:
    """Build an error in answer to a request."""
    return {"jsonrpc": "2.0", "id": to, "error": {"code": code, "message": message}}


def refusal(to: RequestId, status: int, body: bytes) -> Json:
    """Build the answer to a request that HTTP refused: the error in the body, if there is one."""
    try:
        found: object = json.loads(body)
    except ValueError:
        found = None
    error = cast(Json, found).get("error") if isinstance(found, dict) else None
    if isinstance(error, dict) and isinstance(cast(Json, error).get("code"), int):
        return {"jsonrpc": "2.0", "id": to, "error": error}
    said = cast(Json, error).get("message") if isinstance(error, dict) else None
    text = said if isinstance(said, str) else body.decode("utf-8", "replace")[:500]
    return error_answer(to, f"the gateway refused the request (HTTP {status}): {text}")


def _params(message: Json) -> Json:
    found = message.get("params")
    return cast(Json, found) if isinstance(found, dict) else {}


def _header_value(text: str) -> str:
    plain = _SENT_AS_IT_IS.fullmatch(text) and text == text.strip()
    if plain and not _ENCODED.fullmatch(text):
        return text
    return f"=?base64?{base64.b64encode(text.encode()).decode('ascii')}?="
