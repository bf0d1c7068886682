"""The way of an agent from a question to the answer, with the official MCP client alone."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Literal, cast

import pytest
from mcp import Client
from mcp_types import CallToolResult, TextContent

from tests.e2e.harness import Json, StackHarness

pytestmark = pytest.mark.e2e

Mode = Literal["auto", "legacy"]


@pytest.fixture(params=["auto", "legacy"])
def mode(request: pytest.FixtureRequest) -> Mode:
    """The generation of the protocol."""
    return request.param


@asynccontextmanager
async def agent(harness: StackHarness, mode: Mode = "auto") -> AsyncGenerator[Client]:
    """Connect the official client."""
    async with Client(f"{harness.stack.url}/mcp", mode=mode) as client:
        yield client


def answer_of(result: CallToolResult) -> Json:
    """Return the structured answer."""
    assert result.structured_content is not None, result
    return result.structured_content


def text_of(result: CallToolResult) -> str:
    """Return the text that the model reads."""
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


def step(n: int) -> str:
    """Return a program that needs approval and counts one step."""
    return f"return await mcp.counting.step({{ n: {n} }});"


async def test_a_pending_approval_says_what_to_call_and_how_a_person_decides(
    harness: StackHarness, mode: Mode
) -> None:
    async with agent(harness, mode) as client:
        by_program = await client.call_tool("pml_execute", {"code": step(900)})
        by_name = await client.call_tool("counting_step", {"n": 900})
    for result in (by_program, by_name):
        asked = answer_of(result)
        way_on = cast(Json, asked["next"])
        workflow = asked["workflowId"]
        assert asked["status"] == "approval_required"
        assert way_on["call"] == {
            "tool": "pml_get_task_result",
            "arguments": {"workflow_id": workflow, "wait_s": 30},
        }
        assert cast(Json, way_on["person"])["approve"] == f"pml approvals approve {workflow}"
        assert f"pml approvals approve {workflow}" in text_of(result)
        assert "Call pml_get_task_result" in text_of(result)
