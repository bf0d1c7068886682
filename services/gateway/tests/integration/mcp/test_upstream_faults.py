"""Upstream MCP servers that are dead, slow, frozen or gone, and what they leave behind."""

import asyncio
import logging
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import uvloop

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_gateway.adapters.mcp_client.server_pool import Limits, ServerPool
from pml_gateway.domain.servers.server_config import HttpServer, ServerConfig, StdioServer
from pml_local.ports import free_port
from services.gateway.tests.integration.mcp.harness import (
    EACH_GENERATION,
    QUICK,
    Listener,
    ServerHarness,
    connected,
)

pytestmark = pytest.mark.integration


async def test_dead_servers_delay_neither_the_start_nor_the_others(harness: ServerHarness) -> None:
    servers: dict[str, ServerConfig] = {
        "box": harness.stdio(),
        "missing": StdioServer(command="no-such-program"),
        "broken": StdioServer(command="sh", args=("-c", "echo no licence >&2; exit 3")),
        "mute": StdioServer(command="sleep", args=("600",)),
        "down": HttpServer(url=f"http://127.0.0.1:{free_port()}/mcp"),
    }
    limits = Limits(connect_timeout_s=4.0, absence_s=0.0, attempt_s=1.0)
    async with connected(servers, limits=limits) as pool:
        status = pool.status()
        assert status["box"].state == "ready"
        assert {name for name in status if status[name].state == "failed"} == servers.keys() - {
            "box"
        }
        assert "cannot start 'no-such-program'" in str(status["missing"].error)
        assert "no licence" in str(status["broken"].error)
        assert "did not complete the handshake within 4 s" in str(status["mute"].error)
        assert "cannot connect to http://127.0.0.1" in str(status["down"].error)

        for name in ("missing", "broken", "mute", "down"):
            outcome = await pool.call(f"{name}:tool", {}, PATIENCE_S)
            assert outcome.status == "tool_error"
            assert f"MCP server {name!r} is not connected" in str(outcome.message)
        assert (await pool.call("box:echo", {"text": "hi"}, PATIENCE_S)).status == "ok"


def test_a_command_that_is_missing_is_named_on_the_loop_that_the_gateway_runs() -> None:
    async def status_of_missing() -> str:
        async with connected({"missing": StdioServer(command="no-such-program")}) as pool:
            return str(pool.status()["missing"].error)

    assert "cannot start 'no-such-program'" in uvloop.run(status_of_missing())


async def test_a_call_waits_no_longer_than_it_may_for_a_slow_start() -> None:
    pool = ServerPool({"slow": StdioServer(command="sleep", args=("600",))})
    await pool.start()
    try:
        assert not await pool.settled(0.05)
        outcome = await pool.call("slow:tool", {}, 0.1)
    finally:
        await pool.close()
    assert outcome.status == "timeout"
    assert outcome.message == (
        "MCP server 'slow' is still connecting after 0.1 s; nothing was called"
    )


async def test_an_unknown_server_gets_similar_names(harness: ServerHarness) -> None:
    async with connected({"box": harness.stdio()}) as pool:
        outcome = await pool.call("bix:echo", {}, PATIENCE_S)
    assert outcome.status == "tool_error"
    assert outcome.message == "no MCP server 'bix' is configured; did you mean box?"


async def test_a_call_cut_by_a_crash_is_unknown_and_the_server_comes_back(
    reached: ServerConfig, harness: ServerHarness
) -> None:
    listener = Listener()
    async with connected({"box": reached}, on_tools=listener) as pool:
        outcome = await pool.call("box:die", {}, PATIENCE_S)
        assert outcome.status == "unknown"
        assert "it is unknown whether it took effect" in str(outcome.message)
        assert harness.lines() == ["died"]
        if isinstance(reached, StdioServer):
            again = await pool.call("box:echo", {"text": "hi"}, PATIENCE_S)
            assert again.status == "ok"
            await eventually(lambda: len(listener.listings) == 2)


async def test_a_server_that_is_gone_fails_fast_and_is_found_again(harness: ServerHarness) -> None:
    port = free_port()
    limits = replace(QUICK, absence_s=0.0)
    async with (
        harness.http(port=port) as (server, kill),
        connected({"web": server, "box": harness.stdio()}, limits=limits) as pool,
    ):
        await kill()
        gone = await pool.call("web:count", {"key": "once"}, PATIENCE_S)
        assert gone.status == "tool_error"
        assert "MCP server 'web' is not connected: cannot connect to" in str(gone.message)
        assert pool.status()["web"].state == "failed"
        assert (await pool.call("box:echo", {"text": "hi"}, PATIENCE_S)).status == "ok"
        async with harness.http(port=port):
            await eventually(lambda: pool.status()["web"].state == "ready")
            assert (await pool.call("web:count", {"key": "once"}, PATIENCE_S)).status == "ok"
    assert harness.lines() == ["once"]


@EACH_GENERATION
async def test_a_call_after_a_restart_is_made_once(
    harness: ServerHarness, flags: tuple[str, ...]
) -> None:
    port = free_port()
    async with (
        harness.http(*flags, port=port) as (server, kill),
        connected({"web": server}) as pool,
    ):
        await kill()
        async with harness.http(*flags, port=port):
            outcome = await pool.call("web:count", {"key": "once"}, PATIENCE_S)
    assert outcome.status == "ok"
    assert harness.lines() == ["once"]


async def test_a_frozen_server_is_restarted(harness: ServerHarness) -> None:
    limits = Limits(retry_delays_s=(0.05,), stable_s=0.0, suspect_after=2, probe_timeout_s=0.3)
    async with connected({"box": harness.stdio()}, limits=limits) as pool:
        for _ in range(2):
            assert (await pool.call("box:freeze", {"seconds": 600}, 0.2)).status == "unknown"
        outcome = await pool.call("box:echo", {"text": "hi"}, PATIENCE_S)
    assert outcome.status == "ok"


async def test_an_http_refusal_is_named(harness: ServerHarness) -> None:
    async with harness.http() as (server, _):
        elsewhere = HttpServer(url=server.url.replace("/mcp", "/nowhere"))
        async with connected({"web": elsewhere}) as pool:
            status = pool.status()["web"]
    assert status.state == "failed"
    assert "HTTP 404 Not Found" in str(status.error)


async def test_a_child_gets_its_own_variables_and_none_of_the_gateways_secrets(
    harness: ServerHarness,
) -> None:
    server = harness.stdio(env={"TOKEN": "for the server"})
    ours = {"PML_GRANT_KEY": "for the gateway", "LANG": "C.UTF-8"}
    async with connected({"box": server}, environment=ours) as pool:
        seen = [
            (await pool.call("box:variable", {"name": name}, PATIENCE_S)).result
            for name in ("TOKEN", "LANG", "PML_GRANT_KEY")
        ]
    assert seen == ["for the server", "C.UTF-8", "absent"]


async def test_the_stderr_of_a_child_is_logged(
    harness: ServerHarness, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.INFO):
        async with connected({"box": harness.stdio()}):
            pass
    assert "box: the test server speaks" in caplog.messages
    assert capfd.readouterr() == ("", "")


async def test_no_process_is_left_after_closing(harness: ServerHarness) -> None:
    stubborn = StdioServer(command="sh", args=("-c", "trap '' TERM; sleep 600 & wait; wait"))
    before = _children()
    async with connected(
        {"box": harness.stdio(), "mute": stubborn}, limits=Limits(connect_timeout_s=2)
    ):
        assert _children() - before
    assert _children() <= before


async def test_no_process_is_left_when_the_gateway_is_killed(harness: ServerHarness) -> None:
    holder = await asyncio.create_subprocess_exec(
        sys.executable, str(Path(__file__).parent / "holder_program.py"), str(harness.log)
    )
    try:
        pids = [int(line) for line in await eventually(harness.lines)]
        assert pids
        holder.kill()
        await holder.wait()
        await eventually(lambda: not any(_alive(pid) for pid in pids))
    finally:
        if holder.returncode is None:
            holder.kill()


def _children() -> set[int]:
    text = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    return {int(pid) for pid in text.split()}


def _alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False
