"""Upstream MCP servers that are unreachable for a while, and calls during that time."""

import asyncio
from dataclasses import replace

import pytest

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_gateway.adapters.mcp_client.server_pool import Limits
from pml_gateway.domain.tool_calls.repeatable import NotSent
from pml_local.ports import free_port
from services.gateway.tests.integration.mcp.harness import EACH_GENERATION, ServerHarness, connected

pytestmark = pytest.mark.integration

RARELY = Limits(connect_timeout_s=20.0, retry_delays_s=(0.05, 600.0), stable_s=10.0, absence_s=60.0)
"""Without calls, an unreachable server is retried once, and then only after ten minutes."""


@EACH_GENERATION
async def test_calls_wait_for_a_server_that_is_briefly_unreachable(
    harness: ServerHarness, flags: tuple[str, ...]
) -> None:
    port = free_port()
    async with (
        harness.http(*flags, port=port) as (server, kill),
        connected({"web": server}, limits=RARELY) as pool,
    ):
        assert (await pool.call("web:count", {"key": "before"}, PATIENCE_S)).status == "ok"
        await kill()
        pending = [
            asyncio.create_task(pool.call("web:count", {"key": f"{number}"}, PATIENCE_S))
            for number in range(40)
        ]
        await eventually(lambda: pool.status()["web"].state == "failed")
        async with harness.http(*flags, port=port):
            outcomes = await asyncio.gather(*pending)
    assert {outcome.status for outcome in outcomes} == {"ok"}
    assert sorted(harness.lines()) == sorted(["before", *map(str, range(40))])


async def test_a_call_retries_at_once_a_server_that_was_unreachable_for_long(
    harness: ServerHarness,
) -> None:
    port = free_port()
    limits = replace(RARELY, absence_s=0.0, attempt_s=30.0, wanted_delay_s=0.05)
    async with (
        harness.http(port=port) as (server, kill),
        connected({"web": server}, limits=limits) as pool,
    ):
        await kill()
        gone = await pool.call("web:count", {"key": "gone"}, PATIENCE_S)
        assert isinstance(gone, NotSent)
        assert "Nothing was called" in str(gone.message)
        await eventually(lambda: pool.status()["web"].state == "failed")
        async with harness.http(port=port):
            assert (await pool.call("web:count", {"key": "back"}, PATIENCE_S)).status == "ok"
    assert harness.lines() == ["back"]


async def test_calls_wait_for_a_program_that_cannot_be_started_for_a_moment(
    harness: ServerHarness,
) -> None:
    server = harness.stdio()
    door = harness.log.with_name("server")
    async with connected(
        {"box": server.model_copy(update={"command": str(door)})}, limits=RARELY
    ) as pool:
        pending = asyncio.create_task(pool.call("box:count", {"key": "once"}, PATIENCE_S))
        await eventually(lambda: "cannot start" in str(pool.status()["box"].error))
        script = door.with_suffix(".new")
        script.write_text(f'#!/bin/sh\nexec "{server.command}" "$@"\n')
        script.chmod(0o700)
        script.rename(door)
        assert (await pending).status == "ok"
    assert harness.lines() == ["once"]


async def test_a_call_waits_for_an_absent_server_no_longer_than_its_own_time(
    harness: ServerHarness,
) -> None:
    server = harness.stdio().model_copy(update={"command": "no-such-program"})
    async with connected({"box": server}, limits=RARELY) as pool:
        outcome = await pool.call("box:count", {"key": "never"}, 0.2)
    assert isinstance(outcome, NotSent)
    assert "nothing was called" in str(outcome.message)
    assert harness.lines() == []
