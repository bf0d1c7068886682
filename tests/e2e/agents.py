"""The official MCP client of an agent, and what it reads of its answers."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Literal

from mcp import Client
from mcp.client.session import MessageHandlerFnT
from mcp_types import CallToolResult, TextContent

from tests.e2e.harness import Json, StackHarness

Mode = Literal["auto", "legacy"]


@asynccontextmanager
async def agent(
    harness: StackHarness, mode: Mode = "auto", hear: MessageHandlerFnT | None = None
) -> AsyncGenerator[Client]:
    """Connect the official client."""
    url = f"{harness.stack.url}/mcp"
    async with Client(url, mode=mode, message_handler=hear) as client:
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
