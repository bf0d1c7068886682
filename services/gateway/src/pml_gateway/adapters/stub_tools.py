"""A tool answered inside the gateway, so that a benchmark measures us and nobody else."""

from collections.abc import Mapping
from datetime import UTC, datetime

from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.tool import JsonObject, ToolAnnotations, ToolDefinition
from pml_gateway.ports import ServerStatus

SERVER = "pml_stub"
ECHO = ToolDefinition(
    server=SERVER,
    name="echo",
    title="Echo",
    description="Returns its arguments.",
    input_schema={"type": "object", "additionalProperties": True},
    output_schema={"type": "object", "additionalProperties": True},
    annotations=ToolAnnotations(
        read_only=True, destructive=False, idempotent=True, open_world=False
    ),
)


class StubTools:
    """See `ports.ToolServers`; one server, `pml_stub`, with one tool."""

    def __init__(self) -> None:
        self._status = ServerStatus(state="ready", error=None, tools=1, since=datetime.now(UTC))
        self._tools = {SERVER: (ECHO,)}

    async def call(self, tool_id: str, args: JsonObject, timeout_s: float) -> ToolOutcome:
        """See `ports.ToolCaller`."""
        if tool_id != ECHO.tool_id:
            return ToolOutcome(status="tool_error", message=f"there is no tool {tool_id}")
        return ToolOutcome(status="ok", result=args)

    def list_tools(self) -> Mapping[str, tuple[ToolDefinition, ...]]:
        """See `ports.ToolServers`."""
        return self._tools

    def status(self) -> Mapping[str, ServerStatus]:
        """See `ports.ToolServers`."""
        return {SERVER: self._status}

    async def reach(self, server: str, timeout_s: float) -> None:
        """See `ports.ToolServers`: always there."""
