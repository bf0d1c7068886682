"""The tools that PML's MCP endpoint lists: its own, those of servers, named capabilities."""

import re

import pytest
from mcp import MCPError
from mcp_types import INVALID_PARAMS

from pml_common.contracts.gateway import ToolOutcome
from pml_gateway.domain.api.api import ExecuteRequest, ExecuteResponse
from pml_gateway.domain.api.errors import Unavailable
from services.gateway.tests.integration.mcp.served_endpoint import OUTPUT, SCOPE, ServedEndpoint

pytestmark = pytest.mark.integration


async def test_meta_tools_and_upstream_tools_are_listed(mcp: ServedEndpoint, mode: str) -> None:
    async with mcp.client(mode) as client:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools[:3]] == [
            "pml_execute",
            "pml_discover",
            "pml_list_capabilities",
        ]
        assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", tool.name) for tool in tools)
        by_id = {(tool.meta or {}).get("pml/tool"): tool for tool in tools}
        assert {"a:b_c", "a_b:c", "fs:read"} <= by_id.keys()
        assert by_id["a:b_c"].title == "a:b_c"
        read = by_id["fs:read"]
        assert (read.name, read.title) == ("fs_read", "Read a file")
        assert read.output_schema == OUTPUT
        assert read.annotations is not None
        assert read.annotations.read_only_hint is True
        assert read.annotations.title == "Read a file"


async def test_ac7_named_capabilities_are_tools_in_pages(mcp: ServedEndpoint, mode: str) -> None:
    async with mcp.client(mode) as client:
        first = await client.list_tools()
        second = await client.list_tools(cursor=first.next_cursor)
        with pytest.raises(MCPError, match="cursor is none of this list") as refused:
            await client.list_tools(cursor="nonsense")
    tidy = first.tools[-1]
    assert (tidy.name, tidy.title, tidy.description) == (
        "cap_fs_tidy",
        "fs:tidy",
        "Tidies a folder.",
    )
    assert tidy.input_schema["required"] == ["path"]
    assert [tool.name for tool in second.tools] == ["cap_my-fs_sort_all"]
    assert second.next_cursor is None
    assert refused.value.error.code == INVALID_PARAMS


async def test_a_client_chooses_in_its_url_what_is_listed(mcp: ServedEndpoint, mode: str) -> None:
    async with mcp.client(mode, query="?tools=meta") as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        mcp.agent.answers["fs:read"] = ToolOutcome(status="ok", result="hi")
        called = await client.call_tool("fs_read", {"path": "/x"})
    assert "pml_execute" in names
    assert names[-1] == "cap_fs_tidy"
    assert all(name.startswith(("pml_", "cap_")) for name in names)
    assert not called.is_error
    async with mcp.client(mode, query="?tools=few") as client:
        with pytest.raises(MCPError, match="tools is 'few': it is one of all, meta and auto"):
            await client.list_tools()


async def test_without_the_registry_the_other_tools_are_listed(
    mcp: ServedEndpoint, mode: str
) -> None:
    mcp.agent.registry_outage = Unavailable("the registry does not answer")
    async with mcp.client(mode) as client:
        listed = await client.list_tools()
        with pytest.raises(MCPError, match="tools cannot be listed now"):
            await client.list_tools(cursor="2")
    assert "fs_read" in [tool.name for tool in listed.tools]
    assert not [tool.name for tool in listed.tools if tool.name.startswith("cap_")]
    assert listed.meta is not None
    assert "the registry does not answer" in listed.meta["pml/missing"]


@pytest.mark.parametrize("name", ["cap_fs_tidy", "cap:fs:tidy"])
async def test_ac10_a_named_capability_is_called_by_either_name(
    mcp: ServedEndpoint, mode: str, name: str
) -> None:
    mcp.agent.answers["execute"] = ExecuteResponse(status="success", result={"moved": 2})
    async with mcp.client(mode) as client:
        result = await client.call_tool(name, {"path": "a"})
    assert not result.is_error
    assert result.structured_content == {"moved": 2}
    request = ExecuteRequest(capability="fs:tidy", args={"path": "a"})
    assert mcp.agent.requests == [(SCOPE, "ada", request)]
