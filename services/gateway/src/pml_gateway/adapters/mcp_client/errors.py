"""Maps the SDK's exceptions to messages and outcomes that a caller can act on."""

from typing import Final, Literal, cast

import httpx2
from mcp import MCPError
from mcp_types import CONNECTION_CLOSED, PARSE_ERROR, REQUEST_TIMEOUT
from pydantic import ValidationError

from pml_common.contracts.fault_words import faults_of
from pml_common.contracts.gateway import ToolOutcome
from pml_gateway.adapters.mcp_client.http_client import NO_RESULT, NOT_SENT
from pml_gateway.domain.servers.server_config import HttpServer, ServerConfig

EFFECT_UNKNOWN: Final = "and it is unknown whether it took effect"


class NotConnected(Exception):
    """The server cannot be called now; nothing was sent. The message says why."""


class Refused(Exception):
    """The server refused a call on a connection that looked usable. The message says why."""


def describe(error: BaseException) -> str:
    """Return why a connection failed or ended, from its exception."""
    leaf = _first_leaf(error)
    if isinstance(leaf, OSError) and leaf.filename is not None:
        return f"cannot start {leaf.filename!r}: {leaf.strerror}; check its command and cwd"
    if isinstance(leaf, httpx2.HTTPStatusError):
        answer = leaf.response
        return f"it opened no stream: HTTP {answer.status_code} {answer.reason_phrase}"
    if isinstance(leaf, ValidationError):
        return "; ".join(faults_of(leaf))
    return str(leaf) or type(leaf).__name__


def not_connected(server: str, reason: str) -> str:
    """Explain that a call was not made, because its server is not connected."""
    return (
        f"MCP server {server!r} is not connected: {reason}. Nothing was called. "
        "The gateway keeps trying; check that the server runs and that its entry is right"
    )


def needs_login_at(name: str, server: ServerConfig) -> str:
    """Explain that a server answered 401, and what to do."""
    if isinstance(server, HttpServer) and server.logs_in:
        return f"needs login: pml servers login {name}"
    return "it refuses the token of its entry (HTTP 401): change it, then `pml servers reload`"


def excluded(server: str, tool: str) -> str:
    """Explain that a call was not made, because the configuration leaves its tool out."""
    return (
        f"{server}:{tool} is not offered: the lists of tools in the entry of {server!r} in the "
        "mcpServers file leave it out. Nothing was called"
    )


def changed_meanwhile(server: str, tool: str) -> str:
    """Explain that a call was not made, because its tool is another one by now."""
    return (
        f"{server}:{tool} has changed while the call waited for its server. Nothing was called; "
        f"see `pml servers diff {server} {tool}`"
    )


def is_answer(error: Exception) -> bool:
    """Whether a call that raised was answered by its server, be it with an error."""
    if isinstance(error, MCPError):
        unanswered = (CONNECTION_CLOSED, PARSE_ERROR, REQUEST_TIMEOUT)
        return error.code not in unanswered and error.data not in (NO_RESULT, NOT_SENT)
    return isinstance(error, RuntimeError | ValidationError)


def outcome_of_error(
    error: Exception, broken_by: str = "", *, repeatable: bool
) -> ToolOutcome | None:
    """Return the outcome of a call that raised; None if the server certainly never received it.

    `broken_by` is the server's fault that ended the connection, if any. A call that was sent and
    has no usable answer is `unknown`, unless its tool is `repeatable`.
    """
    match error:
        case MCPError(data=data) if data == NOT_SENT:
            return None
        case MCPError(data=data, code=code) if data == NO_RESULT or code == PARSE_ERROR:
            return _without_result(error.message, "tool_error", repeatable)
        case MCPError(code=code) if code == CONNECTION_CLOSED:
            return ToolOutcome(status="unknown", message=_unknown(broken_by or describe(error)))
        case MCPError(code=code) if code == REQUEST_TIMEOUT:
            return _without_result(error.message, "timeout", repeatable)
        case MCPError():
            return ToolOutcome(status="tool_error", message=error.message, code=error.code)
        case ValidationError():
            message = f"the server's answer is not a tool result: {faults_of(error)[0]}"
            return _without_result(message, "tool_error", repeatable)
        case RuntimeError():  # the SDK's check of a result against the tool's output schema
            return _without_result(str(error), "tool_error", repeatable)
        case _:
            return ToolOutcome(status="unknown", message=_unknown(describe(error)))


def _without_result(
    message: str, otherwise: Literal["tool_error", "timeout"], repeatable: bool
) -> ToolOutcome:
    if repeatable:
        return ToolOutcome(status=otherwise, message=message)
    return ToolOutcome(status="unknown", message=_unknown(message))


def _unknown(why: str) -> str:
    return f"{why}: the call was sent, {EFFECT_UNKNOWN}"


def _first_leaf(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error
