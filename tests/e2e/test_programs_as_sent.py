"""Programs in a fence, as a function, or with their result as the last expression, on the whole
stack: they run, what is stored is what ran, and errors are at the author's positions."""

from typing import Any

import pytest

from libs.pml_local.tests.support.harness import eventually
from tests.e2e.harness import StackHarness

pytestmark = pytest.mark.e2e

FENCED = "```ts\nasync ({ n }) => {\n  return await mcp.pml_stub.echo({ n });\n}\n```\n"
FAILING = "```ts\nasync () => { await mcp.pml_stub.echo({ n: 1 }); return nothing.at.all; }\n```"
TRAILING = "const r = await mcp.pml_stub.echo({ n: 3, as: 'sent' });\nr\n"


async def test_a_fenced_function_runs_and_what_ran_is_stored(harness: StackHarness) -> None:
    answer: dict[str, Any] = await harness.execute(FENCED, args={"n": 2}, name="sent:fenced")
    assert answer["status"] == "success", answer
    assert answer["result"] == {"n": 2}
    fence, function = answer["notices"]
    assert fence.startswith("The Markdown fence round the program was taken off")
    assert function.startswith("The program was a function that nobody called")

    async def stored() -> dict[str, Any] | None:
        found = await harness.http.get("/api/capabilities/sent:fenced")
        return found.json() if found.status_code == 200 else None

    record = await eventually(stored)
    assert record is not None
    assert record["code"] == (
        "return await (async ({ n }) => {\n  return await mcp.pml_stub.echo({ n });\n})(args)"
    )
    again = await harness.http.post(
        "/api/execute", json={"capability": "sent:fenced", "args": {"n": 5}}
    )
    assert again.json()["result"] == {"n": 5}, again.text
    assert "notices" not in again.json()


async def test_the_last_expression_is_the_result(harness: StackHarness) -> None:
    answer: dict[str, Any] = await harness.execute(TRAILING)
    assert answer["result"] == {"n": 3, "as": "sent"}, answer
    assert "(line 2) is its result" in answer["notices"][0]


async def test_an_error_is_where_the_author_wrote_it(harness: StackHarness) -> None:
    answer: dict[str, Any] = await harness.execute(FAILING, args={"nothing": {}})
    assert answer["status"] == "error", answer
    line = FAILING.splitlines()[1]
    error = answer["error"]
    assert (error["line"], error["column"]) == (2, line.index(".all") + 2), error


async def test_two_fences_are_refused_as_such(harness: StackHarness) -> None:
    answer: dict[str, Any] = await harness.execute("```\nreturn 1;\n```\n```\nreturn 2;\n```")
    assert answer["error"]["kind"] == "syntax"
    assert "This Markdown fence is not the only one" in answer["error"]["message"]


async def test_half_a_character_in_a_name_is_refused_at_once(harness: StackHarness) -> None:
    answer: dict[str, Any] = await harness.execute('await mcp.pml_stub.echo({ "\\ud800": 1 });')
    assert answer["error"]["kind"] == "rejected", answer
    assert (answer["error"]["line"], answer["error"]["column"]) == (1, 27)
    assert "half a character" in answer["error"]["message"]
