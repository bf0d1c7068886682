"""A tool answered inside the gateway, so that a benchmark measures only PML."""

from collections.abc import Mapping
from datetime import UTC, datetime

from typing_extensions import override

from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.tool import JsonObject, ToolAnnotations, ToolDefinition
from pml_gateway.ports import CallOrigin, ServerStatus, ToolServers

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


class StubTools(ToolServers):
    """One server, `pml_stub`, with one tool."""

    def __init__(self) -> None:
        self._status = ServerStatus(state="ready", error=None, tools=1, since=datetime.now(UTC))
        self._tools = {SERVER: (ECHO,)}

    @override
    async def call(
        self, tool_id: str, args: JsonObject, timeout_s: float, origin: CallOrigin
    ) -> ToolOutcome:
        if tool_id != ECHO.tool_id:
            return ToolOutcome(status="tool_error", message=f"there is no tool {tool_id}")
        return ToolOutcome(status="ok", result=args)

    @override
    def list_tools(self) -> Mapping[str, tuple[ToolDefinition, ...]]:
        return self._tools

    @override
    def status(self) -> Mapping[str, ServerStatus]:
        return {SERVER: self._status}

    @override
    async def reach(self, server: str, timeout_s: float) -> None:
        """Return at once: the server is always available."""
