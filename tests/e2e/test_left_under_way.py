"""A program without `await`, on the whole stack: an error, warnings, and nothing learned of it."""

from typing import Any

import pytest
from mcp.client.client import Client

from tests.e2e.harness import StackHarness

pytestmark = pytest.mark.e2e

MAIN = """async function main() {
  const [one] = await Promise.all([mcp.pml_stub.echo({ n: 1 })]);
  return await mcp.pml_stub.echo({ n: 2, one });
}
"""
WARNING = "Nothing waits for this call"


async def test_a_program_that_ends_before_its_main_fails_and_says_why(
    harness: StackHarness,
) -> None:
    answer: dict[str, Any] = await harness.execute(f"{MAIN}main();")
    assert answer["status"] == "error", answer
    assert "line 5, column 1 is not awaited" in answer["error"]["message"]
    assert (answer["calls"]["made"], answer["calls"]["failed"]) == (1, 0)
    (warning,) = answer["warnings"]
    assert (warning["severity"], warning["line"], warning["source_line"]) == (
        "warning",
        5,
        "main();",
    )
    assert warning["message"].startswith(WARNING)
    learned = await harness.http.get(f"/api/capabilities/{answer['capability_id']}")
    assert not learned.json().get("listed", False)


async def test_the_same_with_await_succeeds_without_warnings(harness: StackHarness) -> None:
    answer = await harness.execute(f"{MAIN}return await main();")
    assert answer["result"] == {"n": 2, "one": {"n": 1}}
    assert "warnings" not in answer


async def test_warnings_reach_an_agent_over_mcp(harness: StackHarness) -> None:
    async with Client(f"{harness.stack.url}/mcp") as client:
        left = await client.call_tool("pml_execute", {"code": f"{MAIN}main();"})
        assert left.is_error
        assert left.structured_content is not None
        assert left.structured_content["warnings"][0]["line"] == 5
        text = "".join(getattr(block, "text", "") for block in left.content)
        assert f"warning at line 5, column 1: {WARNING}" in text
        careless = f"mcp.pml_stub.echo({{ n: 1 }});\n{MAIN}return await main();"
        done = await client.call_tool("pml_execute", {"code": careless})
        assert not done.is_error
        assert done.structured_content is not None
        assert done.structured_content["warnings"][0]["line"] == 1
