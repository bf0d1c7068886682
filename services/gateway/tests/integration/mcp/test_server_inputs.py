"""A request for input of a tool's server, as the clients of PML's endpoint meet it."""

import pytest
from mcp import Client, MCPError
from mcp_types import CallToolResult, ElicitResult, InputRequiredResult, InputResponses

from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.tool_calls.tool_result import Answered, outcome_of
from pml_gateway.ports import ServerInputs
from services.gateway.tests.integration.mcp.served_endpoint import ServedEndpoint

pytestmark = pytest.mark.integration

ASKED: JsonObject = {
    "resultType": "input_required",
    "inputRequests": {
        "who": {
            "method": "elicitation/create",
            "params": {"message": "Who?", "requestedSchema": {"type": "object", "properties": {}}},
        }
    },
    "requestState": "begun",
}
DONE = outcome_of({"content": [], "structuredContent": {"content": "Hello, Ada"}})
REFUSED: JsonObject = {"code": -32021, "message": "sampling is required", "data": {"a": 1}}


async def _call(
    client: Client, state: str | None = None, path: str = "/"
) -> CallToolResult | InputRequiredResult:
    answer: InputResponses = {"who": ElicitResult(action="decline")}
    return await client.session.call_tool(
        "fs_read",
        {"path": path},
        input_responses=None if state is None else answer,
        request_state=state,
        allow_input_required=True,
    )


async def test_a_call_is_answered_with_it_and_made_again_with_the_answers(
    mcp: ServedEndpoint,
) -> None:
    mcp.agent.answers["fs:read"] = outcome_of(ASKED)
    async with mcp.client() as client, mcp.client(user="eve") as other:
        asked = await _call(client)
        assert isinstance(asked, InputRequiredResult)
        assert list(asked.input_requests or ()) == ["who"]
        state = asked.request_state
        assert state is not None
        assert "begun" not in state
        assert mcp.agent.sides[-1].inputs == ServerInputs()

        mcp.agent.answers["fs:read"] = DONE
        assert isinstance(await _call(client, state), CallToolResult)
        given = ServerInputs({"who": {"action": "decline"}}, "begun")
        assert mcp.agent.sides[-1].inputs == given
        calls = len(mcp.agent.sides)
        for who, sealed, path in (
            (other, state, "/"),
            (client, f"{state}x", "/"),
            (client, state, "/other"),
        ):
            with pytest.raises(MCPError, match="requestState is invalid"):
                await _call(who, sealed, path)
        assert len(mcp.agent.sides) == calls


async def test_a_missing_capability_of_the_client_is_an_error_that_names_it(
    mcp: ServedEndpoint,
) -> None:
    mcp.agent.answers["fs:read"] = Answered(status="tool_error", answer={"error": REFUSED})
    async with mcp.client() as client:
        with pytest.raises(MCPError, match="sampling is required") as refused:
            await client.call_tool("fs_read", {})
    assert (refused.value.code, refused.value.data) == (-32021, {"a": 1})


async def test_older_clients_are_asked_while_they_wait(mcp: ServedEndpoint) -> None:
    mcp.agent.answers["fs:read"] = DONE
    async with mcp.client("legacy") as client:
        await client.call_tool("fs_read", {})
    side = mcp.agent.sides[-1]
    assert side.inputs is None
    assert side.client is not None
    assert side.client.takes_requests
