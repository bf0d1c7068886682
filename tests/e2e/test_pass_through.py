"""Progress, resources and prompts of an upstream server, as an agent's client meets them."""

from itertools import pairwise

import pytest
from mcp_types import ResourceLink, TextResourceContents

from libs.pml_local.tests.support.harness import eventually
from tests.conformance.upstream import ICON
from tests.e2e.agents import Mode, agent, answer_of
from tests.e2e.harness import StackHarness

pytestmark = pytest.mark.e2e

BOTH = """
const before = await mcp.test.simple_text({});
return await mcp.test.tool_with_progress({});
"""


async def test_the_progress_of_tools_reaches_the_client_of_the_call_and_of_the_program(
    harness: StackHarness, mode: Mode
) -> None:
    told: list[tuple[float, float | None, str | None]] = []

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    async with agent(harness, mode) as client:
        await client.call_tool("test_tool_with_progress", progress_callback=tell)
        await eventually(lambda: (100, 100, "100 of 100") in told)
        assert [one for one in told if one[1] == 100][1:] == [
            (50, 100, "50 of 100"),
            (100, 100, "100 of 100"),
        ]
        assert all(before < after for (before, *_), (after, *_) in pairwise(told))

        told.clear()
        request = {"code": BOTH, "timeout": 60}
        ran = await client.call_tool("pml_execute", request, progress_callback=tell)
        assert answer_of(ran)["status"] == "success"
        said = "test:tool_with_progress 50 of 100: 50 of 100"
        await eventually(lambda: any(one[2] == said for one in told))
        assert all(before < after for (before, *_), (after, *_) in pairwise(told))


async def test_a_tool_is_shown_as_its_server_does_and_its_link_can_be_read(
    harness: StackHarness, mode: Mode
) -> None:
    async with agent(harness, mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        tool = tools["test_resource_link"]
        assert tool.title == "Link to a resource"
        assert tool.icons == [ICON]
        assert tool.meta == {"example.org/kind": "test", "pml/tool": "test:resource_link"}
        (link,) = (await client.call_tool("test_resource_link")).content
        assert isinstance(link, ResourceLink)
        assert link.uri == "pml://test/test://unlisted"
        (read,) = (await client.read_resource(link.uri)).contents
        assert isinstance(read, TextResourceContents)
        assert read.text == "This is the content of the static text resource."
        listed = (await client.list_resources()).resources
        assert "test://static-text" in {each.uri for each in listed}
        prompts = (await client.list_prompts()).prompts
        assert "test_simple_prompt" in {each.name for each in prompts}
