"""Servers that leave calls unanswered, time limits of their calls, and the queue for them."""

import asyncio

import pytest

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S, SLOWNESS
from pml_common.contracts.tool import JsonObject
from pml_gateway.adapters.mcp_client.server_pool import Limits
from pml_gateway.domain.servers.circuit import CircuitRules
from pml_gateway.domain.tool_calls.repeatable import NotSent
from services.gateway.tests.integration.mcp.harness import ServerHarness, connected

pytestmark = pytest.mark.integration

QUICK = Limits(
    retry_delays_s=(0.05,),
    stable_s=0.0,
    suspect_after=100,
    circuit=CircuitRules(failures=2, cooldowns_s=(0.5 * SLOWNESS, 600.0)),
)
SLOW: JsonObject = {"seconds": 600}


async def test_a_circuit_opens_probes_and_closes(harness: ServerHarness) -> None:
    async with connected({"box": harness.stdio()}, limits=QUICK) as pool:
        for _ in range(2):
            assert (await pool.call("box:slow", SLOW, 0.1)).status == "unknown"
        status = pool.status()["box"]
        assert (status.state, status.circuit) == ("ready", "open")
        assert "left 2 calls in a row unanswered" in str(status.circuit_fault)
        refused = await pool.call("box:count", {"key": "refused"}, PATIENCE_S)
        assert isinstance(refused, NotSent)
        assert refused.status == "tool_error"
        assert "slow did not answer within 0.1 s" in str(refused.message)
        assert str(refused.message).endswith("Nothing was called")
        await eventually(lambda: pool.status()["box"].circuit == "half_open")
        assert (await pool.call("box:count", {"key": "probe"}, PATIENCE_S)).status == "ok"
        status = pool.status()["box"]
        assert (status.circuit, status.circuit_fault) == ("closed", None)
    assert [line for line in harness.lines() if not line.startswith("slow")] == ["probe"]


async def test_a_probe_without_an_answer_opens_the_circuit_again(harness: ServerHarness) -> None:
    async with connected({"box": harness.stdio()}, limits=QUICK) as pool:
        for _ in range(2):
            await pool.call("box:slow", SLOW, 0.1)
        await eventually(lambda: pool.status()["box"].circuit == "half_open")
        probe = asyncio.create_task(pool.call("box:slow", SLOW, 2.0))
        await eventually(lambda: harness.lines().count("slow began") == 3)
        beside = await pool.call("box:count", {"key": "beside"}, PATIENCE_S)
        assert isinstance(beside, NotSent)
        assert "one call is being made to see whether it answers" in str(beside.message)
        assert (await probe).status == "unknown"
        assert pool.status()["box"].circuit == "open"
    assert "beside" not in harness.lines()


async def test_a_cancelled_probe_leaves_room_for_another(harness: ServerHarness) -> None:
    async with connected({"box": harness.stdio()}, limits=QUICK) as pool:
        for _ in range(2):
            await pool.call("box:slow", SLOW, 0.1)
        await eventually(lambda: pool.status()["box"].circuit == "half_open")
        probe = asyncio.create_task(pool.call("box:slow", SLOW, PATIENCE_S))
        await eventually(lambda: harness.lines().count("slow began") == 3)
        probe.cancel()
        await asyncio.gather(probe, return_exceptions=True)
        await eventually(lambda: pool.status()["box"].calls_under_way == 0)
        assert (await pool.call("box:count", {"key": "next"}, PATIENCE_S)).status == "ok"


async def test_errors_of_tools_and_one_crash_under_many_calls_open_no_circuit(
    harness: ServerHarness,
) -> None:
    async with connected({"box": harness.stdio()}, limits=QUICK) as pool:
        for _ in range(4):
            assert (await pool.call("box:echo", {}, PATIENCE_S)).status == "tool_error"
        pending = [asyncio.create_task(pool.call("box:slow", SLOW, PATIENCE_S)) for _ in range(5)]
        await eventually(lambda: harness.lines().count("slow began") == 5)
        assert (await pool.call("box:die", {}, PATIENCE_S)).status == "unknown"
        assert {one.status for one in await asyncio.gather(*pending)} == {"unknown"}
        assert pool.status()["box"].circuit == "closed"
        assert (await pool.call("box:count", {"key": "after"}, PATIENCE_S)).status == "ok"


async def test_a_server_that_dies_at_every_call_is_left_alone(harness: ServerHarness) -> None:
    async with connected({"box": harness.stdio()}, limits=QUICK) as pool:
        for _ in range(2):
            assert (await pool.call("box:die", {}, PATIENCE_S)).status == "unknown"
        assert pool.status()["box"].circuit == "open"


async def test_the_queue_of_calls_has_a_bound(harness: ServerHarness) -> None:
    limits = Limits(concurrency=1, queue=1)
    async with connected({"box": harness.stdio()}, limits=limits) as pool:
        held = asyncio.create_task(pool.call("box:slow", {"seconds": 1}, PATIENCE_S))
        await eventually(lambda: pool.status()["box"].calls_under_way == 1)
        queued = asyncio.create_task(pool.call("box:count", {"key": "queued"}, PATIENCE_S))
        await eventually(lambda: pool.status()["box"].calls_queued == 1)
        turned_away = await pool.call("box:count", {"key": "no"}, PATIENCE_S)
        assert isinstance(turned_away, NotSent)
        assert turned_away.message == (
            "MCP server 'box' is busy: 1 calls are under way and 1 wait for their turn. "
            "Nothing was called"
        )
        assert [(await one).status for one in (held, queued)] == ["ok", "ok"]
    assert harness.lines() == ["slow began", "queued"]


async def test_a_call_has_the_time_of_its_server_within_that_of_its_caller(
    harness: ServerHarness,
) -> None:
    server = harness.stdio().model_copy(update={"timeout": 0.2})
    async with connected({"box": server}) as pool:
        assert pool.status()["box"].timeout_s == 0.2
        outcome = await pool.call("box:slow", SLOW, 600)
        assert outcome.status == "unknown"
        assert "box:slow did not answer within 0.2 s" in str(outcome.message)
        sooner = await pool.call("box:slow", SLOW, 0.1)
        assert "did not answer within 0.1 s" in str(sooner.message)
        assert (await pool.call("box:count", {"key": "quick"}, PATIENCE_S)).status == "ok"
