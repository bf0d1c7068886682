"""MCP servers that connect late, on the whole stack."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import httpx2
import pytest

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_local.composition import StackOptions
from pml_local.events import Event, StackReady, WaitingForMcpServers
from pml_local.ports import free_port
from pml_local.stack import embedded_stack

pytestmark = [pytest.mark.e2e, pytest.mark.nightly]

SERVER = Path(__file__).with_name("slow_server.py")
CALLS = """
const found = [];
for (const n of [1, 2, 3]) found.push((await mcp.slow.mark({ n })).result);
return found;
"""


async def _failed(http: httpx2.AsyncClient, name: str) -> bool:
    servers = (await http.get("/api/servers")).json()["servers"]
    (server,) = [each for each in servers if each["name"] == name]
    return server["state"] == "failed" and "no-such-program" in server["error"]


async def test_programs_and_runs_wait_for_servers_that_are_still_connecting(
    stack_home: Path, tmp_path: Path
) -> None:
    servers = {
        "slow": {"command": sys.executable, "args": [str(SERVER), str(tmp_path)], "trust": "hints"},
        "broken": {"command": "no-such-program"},
    }
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    options = StackOptions(
        stack_home, gateway_port=free_port(), mcp_servers=config, servers_within=0.5
    )
    events: list[Event] = []
    async with (
        embedded_stack(options, events.append) as stack,
        httpx2.AsyncClient(base_url=stack.url, timeout=2 * PATIENCE_S) as http,
    ):
        # The ready event lists servers that are not ready.
        (waiting,) = [each for each in events if isinstance(each, WaitingForMcpServers)]
        assert "slow" in waiting.names
        (ready,) = [each for each in events if isinstance(each, StackReady)]
        assert ready.servers["slow"] == "is still connecting"
        await eventually(lambda: _failed(http, "broken"))

        # A program that uses a failed server gets an error.
        refused = await http.post("/api/execute", json={"code": "await mcp.broken.tool({})"})
        assert "MCP server broken is configured, but failed: cannot start" in refused.text

        # A program that uses a connecting server waits for it.
        asking = asyncio.create_task(http.post("/api/execute", json={"code": CALLS}))
        await asyncio.wait({asking}, timeout=0.2)  # waits: it goes on
        assert not asking.done()
        (tmp_path / "open").touch()
        answer = (await asking).json()
        assert (answer["status"], answer.get("result")) == ("success", [1, 2, 3]), answer

        # Calls of a run also wait for servers that a restarted gateway has not connected yet.
        (tmp_path / "hold").touch()
        (tmp_path / "marks").unlink()
        asking = asyncio.create_task(http.post("/api/execute", json={"code": CALLS}))
        await eventually((tmp_path / "marks").exists)
        (tmp_path / "open").unlink()
        before = stack.pid_of("gateway")
        os.kill(before, signal.SIGKILL)
        (tmp_path / "hold").unlink()
        await asyncio.wait({asking})
        await eventually(lambda: "gateway" in stack.parts and stack.pid_of("gateway") != before)
        (tmp_path / "open").touch()

        async def ended() -> dict[str, object] | None:
            listed = (await http.get("/api/workflows")).json()["workflows"]
            newest = (await http.get(f"/api/workflows/{listed[0]['workflow_id']}")).json()
            return newest if newest["status"] in ("success", "error") else None

        end = await eventually(ended)
        assert end["status"] == "success", end
