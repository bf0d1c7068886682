"""Parts that are restarted or die during requests: callers wait, and none is refused."""

import asyncio
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import psutil
import pytest

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.contracts.catalog import SERVICES
from pml_local.composition import StackOptions
from pml_local.ports import free_port
from pml_local.stack import Stack, embedded_stack
from tests.faults.callers import Callers, Json

pytestmark = [pytest.mark.e2e, pytest.mark.nightly]

DRAIN_S = 2.0
COUNTING = Path(__file__).parents[1] / "e2e" / "counting_server.py"


@pytest.fixture(scope="module")
async def stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Stack]:
    """A stack with an MCP server; services drain for `DRAIN_S` when they stop."""
    home, counted = tmp_path_factory.mktemp("pml"), tmp_path_factory.mktemp("counted")
    config = home / "servers.json"
    counting = {"command": sys.executable, "args": [str(COUNTING), str(counted)]}
    config.write_text(json.dumps({"mcpServers": {"counting": counting}}), encoding="utf-8")
    told = {
        "PML_SHUTDOWN_TIMEOUT_S": str(DRAIN_S),
        "PML_GATEWAY_OWNER_PATIENCE_S": str(PATIENCE_S),
    }
    options = StackOptions(
        home=home / "data", gateway_port=free_port(), mcp_servers=config, env=told
    )
    async with embedded_stack(options) as running:
        yield running


async def test_a_rolling_restart_under_load_refuses_no_caller(stack: Stack) -> None:
    callers, over = Callers(stack.url, DRAIN_S), asyncio.Event()
    async with asyncio.timeout(4 * PATIENCE_S), asyncio.TaskGroup() as tasks:
        for one in (callers.short, callers.short, callers.short_anew, callers.discover):
            tasks.create_task(callers.keep(one, over))
        for name in SERVICES:
            callers.restarted = name
            await stack.restart(name)
            await eventually(partial(_more, callers, callers.answered.copy()), PATIENCE_S)
        over.set()
    assert callers.wrong[:5] == []
    assert await callers.results() == []


async def test_a_run_that_outlasts_a_gateway_answers_running_and_can_be_followed(
    stack: Stack,
) -> None:
    callers = Callers(stack.url, DRAIN_S)
    async with (
        asyncio.timeout(2 * PATIENCE_S),
        callers.client() as http,
        asyncio.TaskGroup() as tasks,
    ):
        asked = [tasks.create_task(callers.long(http, 3 * DRAIN_S)) for _ in range(3)]
        workflows = await eventually(partial(_running, http, len(asked)), PATIENCE_S)
        followed = [tasks.create_task(callers.follow(http, each)) for each in workflows]
        await eventually(lambda: callers.answered["stream"] == len(asked), PATIENCE_S)
        await stack.restart("gateway")
        assert {await each for each in asked} == set(workflows)
        seen = [await each for each in followed]
        whole = [await callers.follow(http, each) for each in workflows]
    assert callers.wrong[:5] == []
    assert callers.answered["long, running"] == len(asked)
    assert await callers.results() == []
    assert _ids(seen) == _ids(whole)
    assert callers.answered["stream"] >= 3 * len(asked)


async def test_callers_of_a_gateway_that_was_killed_wait_for_the_next(stack: Stack) -> None:
    killed = stack.pid_of("gateway")
    os.kill(killed, signal.SIGKILL)
    async with httpx2.AsyncClient(base_url=stack.url, timeout=PATIENCE_S) as http:
        answers = await asyncio.gather(*(http.get("/healthz") for _ in range(20)))
    assert {answer.json()["pid"] for answer in answers}.isdisjoint({killed})


async def test_only_the_gateway_inherits_the_socket(stack: Stack) -> None:
    inode = _listening_inode(urlsplit(stack.url).port)
    # It answers callers a moment before its supervisor has heard that it is ready.
    part = await eventually(lambda: stack.parts.get("gateway"), PATIENCE_S)
    gateway = psutil.Process(part.pid)
    await eventually(gateway.children, PATIENCE_S)
    parts = [psutil.Process(stack.pid_of(name)) for name in stack.parts]
    every = [*parts, *(child for part in parts for child in part.children(recursive=True))]
    assert {each.name() for each in every if "deno" in each.name()}
    assert [each.pid for each in every if _holds(each.pid, inode)] == [gateway.pid]


def _more(callers: Callers, before: Counter[str]) -> bool:
    """Whether callers of each kind got further answers."""
    return all(callers.answered[kind] > before[kind] for kind in ("short", "discover"))


def _ids(streams: list[list[Json]]) -> list[list[object]]:
    return [[each["id"] for each in stream] for stream in streams]


async def _running(http: httpx2.AsyncClient, count: int) -> list[str] | None:
    """The running workflows, once there are `count`."""
    page = (await http.get("/api/workflows", params={"limit": 200})).json()
    running = [
        str(each["workflow_id"]) for each in page["workflows"] if each["status"] == "running"
    ]
    return running if len(running) == count else None


def _listening_inode(port: int | None) -> str:
    """The inode of the socket that listens on a loopback port."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    (found,) = [row[9] for row in rows if row[1].endswith(f":{port:04X}") and row[3] == "0A"]
    return found


def _holds(pid: int, inode: str) -> bool:
    """Whether a process has the socket open."""
    links = Path(f"/proc/{pid}/fd").iterdir()
    return f"socket:[{inode}]" in [str(link.readlink()) for link in links]
