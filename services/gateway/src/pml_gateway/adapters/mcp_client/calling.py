"""One call of an upstream tool, and its server's messages to the client that caused it."""

import asyncio
from dataclasses import dataclass
from typing import cast

from mcp import Client

from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_gateway.ports import CallerSide, ToolProgress


@dataclass(frozen=True)
class Asked:
    """A call as it is asked for; its tool was `judged` by this definition. `sent` is set while its
    server may have it. `side` is its caller's end, where that waits in this process."""

    tool: str
    args: JsonObject
    timeout_s: float
    judged: ToolDefinition | None
    sent: asyncio.Event
    side: CallerSide | None = None


async def called(client: Client, server: str, asked: Asked) -> JsonObject:
    """Make the call and return its `CallToolResult`. Raises what the SDK raises."""
    relay = None if asked.side is None else asked.side.relay

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        if relay is not None:
            relay(ToolProgress(f"{server}:{asked.tool}", progress, total, message))

    result = await client.call_tool(
        asked.tool,
        asked.args,
        read_timeout_seconds=asked.timeout_s,
        progress_callback=None if relay is None else on_progress,
    )
    return cast(JsonObject, result.model_dump(mode="json", by_alias=True, exclude_none=True))
