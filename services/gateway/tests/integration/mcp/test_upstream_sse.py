"""Servers with HTTP with SSE, the transport of before 2025-03-26."""

import pytest

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from services.gateway.tests.integration.mcp.harness import ServerHarness, connected

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("kind", ["sse", "http"])
async def test_a_server_with_sse_is_called_by_name_or_when_it_refuses_streamable_http(
    harness: ServerHarness, kind: str
) -> None:
    async with harness.http("--sse", "--legacy") as (server, kill):
        configured = server.model_copy(update={"type": kind})
        async with connected({"box": configured}) as pool:
            status = pool.status()["box"]
            assert (status.state, status.error, status.transport) == ("ready", None, "sse")
            result = await pool.call("box:echo", {"text": "a"}, PATIENCE_S)
            assert (result.status, result.result) == ("ok", {"text": "a"})
            assert (await pool.call("box:grow", {"name": "more"}, PATIENCE_S)).status == "ok"
            await eventually(lambda: "more" in [t.name for t in pool.list_tools()["box"]])
            await kill()
            await eventually(lambda: pool.status()["box"].state != "ready")
            gone = await pool.call("box:count", {"key": "k"}, 1.0)
            assert gone.status in ("timeout", "tool_error")
            assert harness.lines() == []


async def test_a_call_is_unknown_whose_server_with_sse_dies(harness: ServerHarness) -> None:
    async with (
        harness.http("--sse", "--legacy") as (server, _),
        connected({"box": server}) as pool,
    ):
        assert (await pool.call("box:die", {}, PATIENCE_S)).status == "unknown"
        assert harness.lines() == ["died"]


async def test_an_address_with_neither_transport_says_how_each_fails(
    harness: ServerHarness,
) -> None:
    async with harness.http("--sse", "--legacy") as (server, _):
        nowhere = server.model_copy(update={"url": server.url.replace("/sse", "/nowhere")})
        async with connected({"box": nowhere}) as pool:
            status = pool.status()["box"]
            assert status.state == "failed"
            assert "over HTTP with SSE: " in str(status.error)
            assert "404" in str(status.error)
