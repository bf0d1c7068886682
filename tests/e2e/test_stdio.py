"""`pml mcp`: a client on stdio reaches the stack with everything that HTTP clients have."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import cast
from uuid import uuid4

import pytest
from mcp import Client, StdioServerParameters, stdio_client

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from tests.e2e.agents import Mode, answer_of, step
from tests.e2e.harness import Json, StackHarness

pytestmark = pytest.mark.e2e

COMMAND = ["-c", "from pml_cli.app import main; main()", "mcp", "--home"]


@asynccontextmanager
async def on_stdio(harness: StackHarness, mode: Mode) -> AsyncGenerator[Client]:
    """Connect the official client to the command."""
    home = str(harness.stack.home)
    command = StdioServerParameters(command=sys.executable, args=[*COMMAND, home])
    async with Client(stdio_client(command), mode=mode) as client:
        yield client


async def test_a_client_on_stdio_goes_the_whole_way(harness: StackHarness, mode: Mode) -> None:
    n = 1960 if mode == "auto" else 1965
    reported: list[float] = []

    async def report(progress: float, total: float | None, message: str | None) -> None:
        reported.append(progress)

    async with asyncio.timeout(2 * PATIENCE_S), on_stdio(harness, mode) as client:
        assert "pml_execute" in {tool.name for tool in (await client.list_tools()).tools}
        asked = answer_of(
            await client.call_tool("pml_execute", {"code": step(n)}, progress_callback=report)
        )
        assert asked["status"] == "approval_required"
        assert reported
        way_on = cast(Json, cast(Json, asked["next"])["call"])
        arguments = cast(Json, way_on["arguments"])
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(client.call_tool(str(way_on["tool"]), arguments))
            await harness.approve(str(asked["workflowId"]))
        assert answer_of(await waiting)["result"] == {"result": f"step {n} done"}
        pending = answer_of(await client.call_tool("pml_execute", {"code": step(n + 1)}))
        stopped = await client.call_tool("pml_cancel", {"workflow_id": pending["workflowId"]})
        assert cast(Json, answer_of(stopped)["error"])["kind"] == "cancelled"
        if mode == "auto":
            await _hears_of_a_capability(client)


async def _hears_of_a_capability(client: Client) -> None:
    code = f"const seen = await mcp.counting.peek({{ path: '{uuid4()}' }});\nreturn seen;"
    async with client.listen(tools_list_changed=True) as changes:
        named = {"code": code, "name": f"way:peek_{uuid4().hex[:8]}"}
        done = await client.call_tool("pml_execute", named)
        assert answer_of(done)["status"] == "success", done
        async with asyncio.timeout(PATIENCE_S):
            await anext(changes)


async def test_a_cancelled_call_stops_over_stdio(harness: StackHarness, mode: Mode) -> None:
    n = 1970 if mode == "auto" else 1971
    harness.hold(n)
    async with asyncio.timeout(2 * PATIENCE_S), on_stdio(harness, mode) as client:
        asked = answer_of(await client.call_tool("pml_execute", {"code": step(n)}))
        await harness.approve(str(asked["workflowId"]))
        told = asyncio.Event()

        async def report(progress: float, total: float | None, message: str | None) -> None:
            told.set()

        call = client.call_tool("pml_execute", {"code": step(n)}, progress_callback=report)
        joined = asyncio.create_task(call)
        await eventually(lambda: harness.steps()[n] == 1)
        await told.wait()  # it waits for the run by now
        joined.cancel()
        await asyncio.wait({joined})
        await eventually(lambda: (harness.folder / f"cancelled-{n}").exists())
