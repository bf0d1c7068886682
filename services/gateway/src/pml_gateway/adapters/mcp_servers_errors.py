"""What the SDK raises, in words and outcomes that a caller can act on."""

from typing import cast

from mcp import MCPError
from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT
from pydantic import ValidationError

from pml_common.contracts.gateway import ToolOutcome
from pml_gateway.adapters.mcp_servers_transport import NOT_SENT


class NotConnected(Exception):
    """The server cannot be called now; nothing was sent. Says why."""


def in_words(error: BaseException) -> str:
    """Why a connection failed or ended, from what was raised."""
    leaf = _first_leaf(error)
    if isinstance(leaf, OSError) and leaf.filename is not None:
        return f"cannot start {leaf.filename!r}: {leaf.strerror}; check its command and cwd"
    return str(leaf) or type(leaf).__name__


def outcome_of_error(error: Exception, broken_by: str = "") -> ToolOutcome | None:
    """How a call ended that raised; None where the server certainly never saw it. `broken_by` is
    what the server did that ended the connection, where it did."""
    match error:
        case MCPError(data=data) if data == NOT_SENT:
            return None
        case MCPError(code=code) if code == CONNECTION_CLOSED:
            return ToolOutcome(status="unknown", message=_unknown(error, broken_by))
        case MCPError(code=code):
            status = "timeout" if code == REQUEST_TIMEOUT else "tool_error"
            return ToolOutcome(status=status, message=error.message)
        case ValidationError():
            fault = error.errors()[0]
            field = ".".join(str(part) for part in fault["loc"])
            message = f"the server's answer is not a tool result: {field}: {fault['msg']}"
            return ToolOutcome(status="tool_error", message=message)
        case RuntimeError():  # the SDK's check of a result against the tool's output schema
            return ToolOutcome(status="tool_error", message=str(error))
        case _:
            return ToolOutcome(status="unknown", message=_unknown(error))


def _unknown(error: Exception, broken_by: str = "") -> str:
    why = broken_by or in_words(error)
    return f"{why}: the call was sent, and nobody can say whether it took effect"


def _first_leaf(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error
