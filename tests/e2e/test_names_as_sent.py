"""Names of tools as clients list them and other hosts have them, and lists of tools, on the whole
stack: the same over REST, over MCP and from the command."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from libs.pml_local.tests.support.harness import eventually
from tests.e2e.agents import agent, answer_of
from tests.e2e.harness import StackHarness

pytestmark = pytest.mark.e2e

PML = Path(sys.executable).with_name("pml")
NAMES = {
    "a listed name": ("return await mcp.pml_stub_echo({ n: 1 });", {"n": 1}),
    "another spelling": ("return await mcp.odd.get_sum({});", "three"),
    "tools": ("return await tools.pml_stub.echo({ n: 2 });", {"n": 2}),
    "codemode": ("return await codemode.odd_get_sum({});", "three"),
    "a call by two names": ("return await mcp.callTool('pml_stub', 'echo', { n: 3 });", {"n": 3}),
    "a request": (
        "return await callTool({\n  name: 'pml_stub_echo',\n  arguments: { n: 4 },\n});",
        {"n": 4},
    ),
}
LISTS = """
const found = [];
for (const tool in mcp.pml_stub) found.push(tool);
return { found, own: Object.keys(mcp.pml_stub), has: ["echo" in mcp.pml_stub, "x" in mcp.pml_stub],
  each: ["pml_stub"].map((name) => Object.keys(mcp[name])),
  none: Object.keys(mcp[args.gone ?? "x"]),
  servers: Object.keys(mcp).filter((name) => name in { odd: 1, pml_stub: 1, gone: 1 }) };
"""


async def _pml(harness: StackHarness, code: str, folder: Path) -> dict[str, Any]:
    """Run a program with the command, and return its answer."""
    file = folder / "program.ts"
    file.write_text(code, encoding="utf-8")
    words = ("execute", str(file), "--json", "--url", harness.stack.url)
    process = await asyncio.create_subprocess_exec(
        PML, *words, stdout=asyncio.subprocess.PIPE, env={"COLUMNS": "200", "NO_COLOR": "1"}
    )
    out, _ = await process.communicate()
    return json.loads(out)


@pytest.mark.parametrize(("code", "result"), NAMES.values(), ids=NAMES)
async def test_a_name_that_only_one_tool_can_mean_calls_it(
    harness: StackHarness, code: str, result: object
) -> None:
    answer: dict[str, Any] = await harness.execute(code)
    assert answer["status"] == "success", answer
    assert answer["result"] == result
    assert answer["notices"][0].startswith("Names of tools were replaced by those that work here")
    async with agent(harness) as client:
        over_mcp = answer_of(await client.call_tool("pml_execute", {"code": code}))
    assert (over_mcp["result"], over_mcp["notices"]) == (result, answer["notices"])


async def test_the_command_runs_the_same_names(harness: StackHarness, tmp_path: Path) -> None:
    code, result = NAMES["another spelling"]
    answer = await _pml(harness, code, tmp_path)
    assert (answer["result"], len(answer["notices"])) == (result, 1)
    listed = await _pml(harness, LISTS, tmp_path)
    assert listed["result"]["own"] == ["echo"]


async def test_what_ran_is_stored_and_runs_again(harness: StackHarness) -> None:
    answer: dict[str, Any] = await harness.execute(
        "return await tools.odd.get_sum({});", name="names:stored"
    )
    assert answer["status"] == "success", answer

    async def stored() -> dict[str, Any] | None:
        found = await harness.http.get("/api/capabilities/names:stored")
        return found.json() if found.status_code == 200 else None

    record = await eventually(stored)
    assert record is not None
    assert 'mcp.odd["get-sum"]' in record["code"]
    again = await harness.http.post("/api/execute", json={"capability": "names:stored"})
    assert again.json()["result"] == "three", again.text
    assert "notices" not in again.json()


async def test_an_error_after_a_replaced_name_is_where_the_author_wrote_it(
    harness: StackHarness,
) -> None:
    line = "await callTool({ name: 'odd_get_sum', arguments: {} }); return nothing.at.all;"
    answer: dict[str, Any] = await harness.execute(line, args={"nothing": {}})
    error = answer["error"]
    assert (error["line"], error["column"]) == (1, line.index(".all") + 2), error
    line = "return await codemode.odd_fails({});"
    error = (await harness.execute(line))["error"]
    assert isinstance(error, dict)
    assert error["line"] == 1


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("return await mcp.pml_stub_ecko({});", "Did you mean mcp.pml_stub.echo(…)?"),
        ("return await mcp.callTool(args.name);", "write mcp.<server>.<tool>(…), or mcp.call("),
    ],
)
async def test_what_is_refused_says_the_form_that_works(
    harness: StackHarness, code: str, told: str
) -> None:
    error = (await harness.execute(code))["error"]
    assert isinstance(error, dict)
    assert told in error["message"]


async def test_servers_and_tools_are_listed_without_asking(harness: StackHarness) -> None:
    result = {
        "found": ["echo"],
        "own": ["echo"],
        "has": [True, False],
        "each": [["echo"]],
        "none": [],
        "servers": ["odd", "pml_stub"],
    }
    answer = (await harness.http.post("/api/execute", json={"code": LISTS})).json()
    assert (answer["status"], answer["result"]) == ("success", result)
    assert "notices" not in answer
    async with agent(harness) as client:
        over_mcp = answer_of(await client.call_tool("pml_execute", {"code": LISTS}))
    assert over_mcp["result"] == result


async def test_a_call_by_a_listed_name_still_asks(harness: StackHarness) -> None:
    code = "for (const t in mcp.pml_stub) return await mcp.pml_stub[t]({});"
    answer = (await harness.http.post("/api/execute", json={"code": code})).json()
    assert answer["status"] == "approval_required"
