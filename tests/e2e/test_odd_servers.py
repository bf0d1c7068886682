"""MCP servers with odd tools and results on the whole stack, through the official client."""

import json
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp_types import INVALID_PARAMS, CallToolResult, ImageContent, TextContent

from tests.e2e.harness import StackHarness
from tests.e2e.odd_server import IMAGE

pytestmark = pytest.mark.e2e

EXACT = 2**60 + 1


async def _called(harness: StackHarness, tool: str, /, **args: Any) -> CallToolResult:
    async with Client(f"{harness.stack.url}/mcp") as client:
        return await client.call_tool(tool, args)


async def _run(harness: StackHarness, code: str, /, **more: Any) -> dict[str, Any]:
    result = await _called(harness, "pml_execute", code=code, **more)
    assert result.structured_content is not None
    return result.structured_content


def _texts(result: CallToolResult) -> list[str]:
    return [block.text for block in result.content if isinstance(block, TextContent)]


async def test_a_malformed_tool_is_named_by_the_status_and_the_others_work(
    harness: StackHarness,
) -> None:
    servers = (await harness.http.get("/api/servers")).json()["servers"]
    (odd,) = (one for one in servers if one["name"] == "odd")
    assert (odd["state"], odd["circuit"], odd["timeout_s"]) == ("ready", "closed", 30.0)
    assert odd["warnings"] == ["bare: set aside, inputSchema: is missing"]
    health = (await harness.http.get("/healthz")).json()["mcp_servers"]["odd"]
    assert health == f"ready; {odd['warnings'][0]}"
    assert (await _run(harness, "return await mcp.odd.text({});"))["result"] == "fine"


async def test_an_answer_that_cannot_be_read_fails_its_call_at_once(harness: StackHarness) -> None:
    answer = await _run(harness, "return await mcp.odd.broken({});", timeout=600)
    assert answer["error"]["kind"] == "tool_error"
    assert "its answer is no JSON-RPC message" in answer["error"]["message"]


async def test_a_server_that_failed_is_not_said_to_be_missing(harness: StackHarness) -> None:
    answer = await _run(harness, "return await mcp.gone.read({});")
    message = answer["error"]["message"]
    assert message.startswith("MCP server gone is configured, but failed: cannot start 'no-such-")
    assert "There is no server" not in json.dumps(answer)
    result = await _called(harness, "gone_read")
    assert result.is_error
    assert "MCP server gone is configured, but failed" in _texts(result)[0]


async def test_an_unknown_tool_is_an_error_of_the_request(harness: StackHarness) -> None:
    program = "return await mcp.odd.text({ for: 'the name' });"
    assert (await _run(harness, program, name="odd:say_text"))["status"] == "success"
    async with Client(f"{harness.stack.url}/mcp") as client:
        with pytest.raises(MCPError, match=r'pml_execute \{"capability": "odd:say_text"') as known:
            await client.call_tool("odd:say_text", {})
        with pytest.raises(MCPError, match="call odd_text ") as inside:
            await client.call_tool("mcp.odd.text", {})
    assert [told.value.code for told in (known, inside)] == [INVALID_PARAMS] * 2


async def test_blocks_and_integers_reach_the_caller_of_a_tool(harness: StackHarness) -> None:
    shot = await _called(harness, "odd_shot")
    assert shot.structured_content == {"id": EXACT}
    assert _texts(shot) == ["a cat"]
    assert [block.data for block in shot.content if isinstance(block, ImageContent)] == [IMAGE]
    assert (await _called(harness, "odd_empty")).content == []
    failed = await _called(harness, "odd_fails")
    assert (failed.is_error, failed.structured_content) == (True, {"code": 404})


async def test_blocks_and_integers_reach_a_program_and_come_back(harness: StackHarness) -> None:
    code = """
    const shot = await mcp.odd.shot({});
    const empty = await mcp.odd.empty({});
    const error = await mcp.odd.fails({}).catch((error) => error.message);
    return { shot, empty, error };
    """
    result = await _called(harness, "pml_execute", code=code)
    assert result.structured_content is not None
    note = {"type": "image", "content_block": 1, "mimeType": "image/png"}
    assert result.structured_content["result"] == {
        "shot": {"id": str(EXACT), "_content": [{"type": "text", "text": "a cat"}, note]},
        "empty": None,
        "error": 'no such page\n{"code": 404}',
    }
    assert json.loads(_texts(result)[0]) == result.structured_content
    assert IMAGE not in _texts(result)[0]
    assert [block.data for block in result.content if isinstance(block, ImageContent)] == [IMAGE]


async def test_an_integer_that_a_program_would_round_is_refused(harness: StackHarness) -> None:
    result = await _called(harness, "pml_execute", code="return args.id;", args={"id": EXACT})
    assert result.is_error
    assert f"args.id is {EXACT}" in _texts(result)[0]


@pytest.mark.parametrize("name", ["then", "toJSON", "toString", "constructor"])
async def test_a_tool_that_is_no_member_is_called_by_its_id(
    harness: StackHarness, name: str
) -> None:
    refused = await _run(harness, f"return await mcp.odd.{name}({{}});")
    form = f'mcp.call("odd:{name}", {{…}})'
    assert form in refused["error"]["message"]
    called = await _run(harness, f"return await {form.replace('{…}', '{}')};")
    assert called["result"] == name
