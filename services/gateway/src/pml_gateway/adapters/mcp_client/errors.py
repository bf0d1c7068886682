"""What the SDK raises, in words and outcomes that a caller can act on."""

from typing import Final, Literal, cast

from mcp import MCPError
from mcp_types import CONNECTION_CLOSED, PARSE_ERROR, REQUEST_TIMEOUT
from pydantic import ValidationError

from pml_common.contracts.gateway import ToolOutcome
from pml_gateway.adapters.mcp_client.transport import NO_RESULT, NOT_SENT

TOOK_EFFECT: Final = "and nobody can say whether it took effect"


class NotConnected(Exception):
    """The server cannot be called now; nothing was sent. Says why."""


class Refused(Exception):
    """The server took no call on a connection that looked usable. Says why."""


def in_words(error: BaseException) -> str:
    """Why a connection failed or ended, from what was raised."""
    leaf = _first_leaf(error)
    if isinstance(leaf, OSError) and leaf.filename is not None:
        return f"cannot start {leaf.filename!r}: {leaf.strerror}; check its command and cwd"
    return str(leaf) or type(leaf).__name__


def outcome_of_error(
    error: Exception, broken_by: str = "", *, repeatable: bool
) -> ToolOutcome | None:
    """How a call ended that raised; None where the server certainly never saw it.

    `broken_by` is what the server did that ended the connection, where it did. A call that was sent
    and has no usable answer is `unknown`, unless its tool is `repeatable`.
    """
    match error:
        case MCPError(data=data) if data == NOT_SENT:
            return None
        case MCPError(data=data, code=code) if data == NO_RESULT or code == PARSE_ERROR:
            return _without_result(error.message, "tool_error", repeatable)
        case MCPError(code=code) if code == CONNECTION_CLOSED:
            return ToolOutcome(status="unknown", message=_unknown(broken_by or in_words(error)))
        case MCPError(code=code) if code == REQUEST_TIMEOUT:
            return _without_result(error.message, "timeout", repeatable)
        case MCPError():
            return ToolOutcome(status="tool_error", message=error.message)
        case ValidationError():
            fault = error.errors()[0]
            field = ".".join(str(part) for part in fault["loc"])
            message = f"the server's answer is not a tool result: {field}: {fault['msg']}"
            return _without_result(message, "tool_error", repeatable)
        case RuntimeError():  # the SDK's check of a result against the tool's output schema
            return _without_result(str(error), "tool_error", repeatable)
        case _:
            return ToolOutcome(status="unknown", message=_unknown(in_words(error)))


def _without_result(
    message: str, otherwise: Literal["tool_error", "timeout"], repeatable: bool
) -> ToolOutcome:
    if repeatable:
        return ToolOutcome(status=otherwise, message=message)
    return ToolOutcome(status="unknown", message=_unknown(message))


def _unknown(why: str) -> str:
    return f"{why}: the call was sent, {TOOK_EFFECT}"


def _first_leaf(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error
