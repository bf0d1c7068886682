"""Calls on connected MCP servers, over each transport and each generation of the protocol."""

import asyncio
from uuid import UUID

import pytest

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.tool import ToolAnnotations
from pml_gateway.adapters.mcp_client.server_pool import Limits
from pml_gateway.domain.servers.server_config import ServerConfig
from pml_gateway.domain.tool_calls.tool_result import Answered
from pml_gateway.ports import Caller, CallerSide, CallOrigin, ToolProgress
from services.gateway.tests.integration.mcp.harness import QUICK, Listener, ServerHarness, connected
from services.gateway.tests.support.builders import SCOPE

pytestmark = pytest.mark.integration


async def test_a_server_lists_its_tools_with_their_hints(reached: ServerConfig) -> None:
    async with connected({"box": reached}) as pool:
        tools = {tool.name: tool for tool in pool.list_tools()["box"]}
        assert pool.status()["box"].state == "ready"
        assert pool.status()["box"].tools == len(tools)
    assert tools["echo"].tool_id == "box:echo"
    assert tools["echo"].description == "Say it again."
    assert tools["echo"].annotations == ToolAnnotations(read_only=True, idempotent=True)
    assert tools["count"].annotations == ToolAnnotations()
    assert tools["echo"].input_schema["required"] == ["text"]
    assert tools["echo"].title == "Echo"
    assert tools["echo"].output_schema is not None
    assert tools["blocks"].output_schema is None


async def test_progress_reaches_the_caller_who_waits(reached: ServerConfig) -> None:
    told: list[ToolProgress] = []
    side = CallerSide(relay=told.append)
    origin = CallOrigin(Caller(SCOPE, "mira"), UUID(int=1), side)
    async with connected({"box": reached}) as pool:
        await pool.call("box:steps", {"steps": 2}, PATIENCE_S, origin)
        await eventually(lambda: len(told) == 2)
        await pool.call("box:steps", {"steps": 2}, PATIENCE_S)
    assert told == [ToolProgress("box:steps", n, 2, f"step {n}") for n in (1, 2)]


def _plain(outcome: ToolOutcome) -> ToolOutcome:
    assert isinstance(outcome, Answered)
    return outcome.plain


async def test_results_become_values(reached: ServerConfig) -> None:
    async with connected({"box": reached}) as pool:
        structured = await pool.call("box:echo", {"text": "hi"}, PATIENCE_S)
        text = await pool.call("box:slow", {"seconds": 0}, PATIENCE_S)
        blocks = await pool.call("box:blocks", {}, PATIENCE_S)
    assert _plain(structured) == ToolOutcome(status="ok", result={"text": "hi"})
    assert _plain(text) == ToolOutcome(status="ok", result="done")
    assert blocks.result == [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]


async def test_failures_carry_the_message_of_the_tool(reached: ServerConfig) -> None:
    async with connected({"box": reached}) as pool:
        failed = await pool.call("box:echo", {}, PATIENCE_S)
        misspelt = await pool.call("box:ecko", {}, PATIENCE_S)
        nonsense = await pool.call("box:lie", {}, PATIENCE_S)
    assert _plain(failed) == ToolOutcome(status="tool_error", message="text is missing")
    assert misspelt == ToolOutcome(status="tool_error", message="no tool ecko", code=-32601)
    assert nonsense.status == "unknown"
    assert "is not of type 'string'" in str(nonsense.message)


async def test_concurrent_calls_get_their_own_replies(reached: ServerConfig) -> None:
    async with connected({"box": reached}) as pool:
        texts = [f"text {number}" for number in range(100)]
        calls = (pool.call("box:echo", {"text": text}, PATIENCE_S) for text in texts)
        outcomes = await asyncio.gather(*calls)
    assert [outcome.result for outcome in outcomes] == [{"text": text} for text in texts]


async def test_a_slow_call_does_not_delay_the_others(
    reached: ServerConfig, harness: ServerHarness
) -> None:
    async with connected({"box": reached}) as pool:
        slow = asyncio.create_task(pool.call("box:slow", {"seconds": 30}, PATIENCE_S))
        await eventually(lambda: "slow began" in harness.lines())
        quick = await pool.call("box:echo", {"text": "hi"}, PATIENCE_S)
        assert quick.status == "ok"
        assert not slow.done()
        slow.cancel()
        await asyncio.wait({slow})


async def test_a_call_past_its_timeout_is_cancelled_in_the_server(
    reached: ServerConfig, harness: ServerHarness
) -> None:
    async with connected({"box": reached}) as pool:
        outcome = await pool.call("box:slow", {"seconds": 60}, 0.5)
        assert outcome.status == "unknown"
        assert "box:slow did not answer within 0.5 s" in str(outcome.message)
        await eventually(lambda: harness.lines() == ["slow began", "slow cancelled"])
        assert (await pool.call("box:echo", {"text": "hi"}, PATIENCE_S)).status == "ok"


async def test_a_callers_cancellation_reaches_the_tool(
    reached: ServerConfig, harness: ServerHarness
) -> None:
    async with connected({"box": reached}) as pool:
        call = asyncio.create_task(pool.call("box:slow", {"seconds": 60}, PATIENCE_S))
        await eventually(lambda: "slow began" in harness.lines())
        call.cancel()
        await eventually(lambda: "slow cancelled" in harness.lines())
        assert call.cancelled()


async def test_calls_beyond_the_limit_wait_their_turn(harness: ServerHarness) -> None:
    one_by_one = Limits(connect_timeout_s=20, concurrency=1)
    async with connected({"box": harness.stdio()}, limits=one_by_one) as pool:
        first = asyncio.create_task(pool.call("box:slow", {"seconds": 60}, 2))
        await eventually(lambda: "slow began" in harness.lines())
        second = await pool.call("box:count", {"key": "b"}, 0.2)
        assert second.status == "timeout"
        assert "nothing was called" in str(second.message)
        assert (await first).status == "unknown"
        third = await pool.call("box:count", {"key": "b"}, PATIENCE_S)
    assert third.status == "ok"
    assert harness.lines().count("b") == 1


async def test_the_listener_is_notified_of_a_changed_listing(reached: ServerConfig) -> None:
    listener = Listener()
    async with connected({"box": reached}, on_tools=listener) as pool:
        await eventually(lambda: len(listener.listings) == 1)
        await pool.call("box:grow", {"name": "echo_0"}, PATIENCE_S)
        name, tools = await eventually(lambda: listener.listings[1:] and listener.listings[-1])
        assert (name, "echo_0" in tools) == ("box", True)
        assert pool.status()["box"].tools == len(tools)
        assert (await pool.call("box:echo_0", {"text": "hi"}, PATIENCE_S)).status == "ok"


async def test_a_failed_notification_of_a_listing_is_repeated(harness: ServerHarness) -> None:
    listener = Listener(failures=2)
    async with connected({"box": harness.stdio()}, limits=QUICK, on_tools=listener):
        await eventually(lambda: listener.listings)
    assert len(listener.listings) == 1
    assert "echo" in listener.listings[0][1]
