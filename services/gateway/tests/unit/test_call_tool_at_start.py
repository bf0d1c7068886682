"""Calls that arrive before their MCP server has told its tools, as after a restart."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from pml_common.bus.errors import QueryFailed
from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_gateway.handlers.on_call_tool import ToolCalls
from pml_gateway.ports import ServerStatus
from services.gateway.tests.calling import call, tool_calls
from services.gateway.tests.examples import AT, READ, workflow

CONNECTING = ServerStatus(state="connecting", error=None, tools=0, since=AT)


@dataclass
class Server:
    """One server, `fs`, as it stands."""

    now: ServerStatus = CONNECTING
    listed: tuple[ToolDefinition, ...] = ()
    calls: list[str] = field(default_factory=list[str])

    async def call(self, tool_id: str, args: JsonObject, timeout_s: float) -> ToolOutcome:
        self.calls.append(tool_id)
        return ToolOutcome(status="ok", result="read")

    def list_tools(self) -> Mapping[str, tuple[ToolDefinition, ...]]:
        return {"fs": self.listed}

    def status(self) -> Mapping[str, ServerStatus]:
        return {"fs": self.now}


def calls_on(server: Server) -> ToolCalls:
    return tool_calls(server)


async def test_a_call_is_to_be_asked_again_until_its_server_has_told_its_tools() -> None:
    server = Server()
    calls, asked = calls_on(server), call(workflow())
    with pytest.raises(QueryFailed, match="fs is being connected; ask again") as failed:
        await calls.on_call_tool(asked)
    assert failed.value.code == "unavailable"
    server.now, server.listed = replace(CONNECTING, state="ready", tools=1), (READ,)
    assert (await calls.on_call_tool(asked)).result == "read"
    assert server.calls == ["fs:read"]


@pytest.mark.parametrize(
    "status",
    [
        replace(CONNECTING, state="ready"),
        replace(CONNECTING, state="failed", error="it is not there"),
        replace(CONNECTING, tools=3),
    ],
)
async def test_a_tool_that_its_server_does_not_list_is_refused(status: ServerStatus) -> None:
    server = Server(status)
    outcome = await calls_on(server).on_call_tool(call(workflow()))
    assert outcome.status == "refused"
    assert server.calls == []
