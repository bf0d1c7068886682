"""Programs that return a part that the result of a tool does not have, on the whole stack: an error
where they only read, else a success that says so first, and that is neither offered nor named."""

from typing import Any

import pytest
from mcp.client.client import Client

from libs.pml_local.tests.support.harness import eventually
from tests.e2e.harness import StackHarness

pytestmark = pytest.mark.e2e

READS = "const res = await mcp.odd.text({});\nreturn res.content?.[0]?.text;"
WHY = (
    "the program returned res.content?.[0]?.text (line 2), and the result of odd:text (n1) has no "
    ".content: it is text. Return it itself"
)
WRITES = """await mcp.counting.step({ n: args.n });
const res = await mcp.pml_stub.echo(args);
return res.found;"""
INTENT = "count a step and return what was found in box 4101"
DONE = "Do not repeat the program: its calls were made."


async def test_a_program_that_only_reads_fails_and_says_what_the_result_is(
    harness: StackHarness,
) -> None:
    answer: dict[str, Any] = await harness.execute(READS)
    assert (answer["status"], answer["error"]["kind"]) == ("error", "user_error"), answer
    assert (answer["error"]["line"], answer["error"]["column"]) == (2, 8)
    assert answer["error"]["message"].startswith(WHY)
    assert "fine" not in answer["error"]["message"]


async def test_a_part_of_a_missing_part_is_told_where_the_program_throws(
    harness: StackHarness,
) -> None:
    code = "const res = await mcp.odd.text({});\nreturn res.content[0].text;"
    answer: dict[str, Any] = await harness.execute(code)
    error = answer["error"]
    assert (error["kind"], error["node_id"]) == ("user_error", "n1"), answer
    assert (error["line"], error["column"]) == (2, 19)
    assert (
        "TypeError: Cannot read properties of undefined (reading '0'): the program"
        in (error["message"])
    )
    assert WHY.replace("?.", ".").replace(".[", "[") in error["message"]


async def test_an_agent_over_mcp_is_told_the_same(harness: StackHarness) -> None:
    async with Client(f"{harness.stack.url}/mcp") as client:
        failed = await client.call_tool("pml_execute", {"code": READS})
        assert failed.is_error
        assert WHY in "".join(getattr(block, "text", "") for block in failed.content)
        asked = await client.call_tool("pml_execute", {"code": WRITES, "args": {"n": 4102}})
        assert asked.structured_content is not None
        workflow = asked.structured_content["workflowId"]
        await harness.approve(workflow)
        wanted = {"workflow_id": workflow, "wait_s": 30}
        done = await client.call_tool("pml_get_task_result", wanted)
        answer = done.structured_content
        assert answer is not None
        assert (answer["status"], answer["result"]) == ("success", None), answer
        assert answer["notices"][0].startswith(DONE)
        assert '"task_id": "n2.0"' in answer["notices"][0]
        whole = await client.call_tool("pml_get_task_result", {**wanted, "task_id": "n2.0"})
        assert whole.structured_content is not None
        assert whole.structured_content["result"] == {"n": 4102}
    shown = await harness.workflow(workflow)
    assert shown["notices"] == answer["notices"]


async def test_what_had_no_result_is_neither_found_nor_named_until_a_run_has_one(
    harness: StackHarness,
) -> None:
    async def run(**args: object) -> dict[str, Any]:
        request = {"code": WRITES, "args": {"n": 4101, **args}, "intent": INTENT}
        request |= {"name": "void:found"}
        asked = (await harness.http.post("/api/execute", json=request)).json()
        assert asked["status"] == "approval_required", asked
        answer = await harness.http.post(
            f"/api/workflows/{asked['workflow_id']}/approval",
            json={"decision": "approve", "wait": True},
            headers=harness.approver,
        )
        return answer.json()

    async def found() -> list[str]:
        asked = {"intent": INTENT, "type": "capability", "limit": 100}
        hits = (await harness.http.post("/api/discover", json=asked)).json()["hits"]
        return [hit["name"] for hit in hits]

    first = await run()
    assert (first["status"], first["result"]) == ("success", None), first
    told, unnamed = first["notices"]
    assert told.startswith(DONE)
    assert "has no .found: it is an object with n (a number)" in told
    assert unnamed.startswith("void:found was not given to this program")
    assert "capability_name" not in first
    await eventually(lambda: _is_traced(harness, first["workflow_id"]))
    stored = (await harness.http.get(f"/api/capabilities/{first['capability_id']}")).json()
    assert stored["usage"]["count"] == 0, stored
    assert stored["name"] not in await found()

    second = await run(found=1)
    assert (second["status"], second["result"]) == ("success", 1), second
    await harness.has_name(second, "void:found")
    assert "void:found" in await found()
    assert harness.steps()[4101] == 2


async def _is_traced(harness: StackHarness, workflow: str) -> bool:
    answer = await harness.http.get(f"/api/workflows/{workflow}/trace")
    return bool(answer.json().get("traces"))
