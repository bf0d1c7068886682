"""The main use case and bad inputs, on the whole stack."""

from typing import cast
from uuid import uuid4

import pytest
from mcp.client.client import Client

from libs.pml_local.tests.support.harness import eventually
from tests.e2e.deciding import decide
from tests.e2e.harness import Json, StackHarness

pytestmark = pytest.mark.e2e

BRANCHES = """
const found = await mcp.counting.peek({ path: args.path });
if (found.exists) {
  return await mcp.pml_stub.echo({ took: "true" });
} else {
  return await mcp.pml_stub.echo({ took: "false" });
}
"""


async def _error(harness: StackHarness, code: str, **more: object) -> Json:
    answer = await harness.execute(code, **more)
    assert answer["status"] == "error", answer
    return cast(Json, answer["error"])


async def test_a_program_runs_is_learned_and_runs_again_by_name(harness: StackHarness) -> None:
    here, nowhere = str(harness.folder), str(harness.folder / "nowhere")
    first = await harness.execute(
        BRANCHES, name="files:look", intent="see whether a file is there", args={"path": here}
    )
    assert first["status"] == "success", first
    assert first["result"] == {"took": "true"}
    await harness.has_name(first, "files:look")
    capability = str(first["capability_id"])

    async def listed() -> bool:
        return (
            (await harness.http.get(f"/api/capabilities/{capability}")).json().get("listed", False)
        )

    await eventually(listed)
    answer = await harness.http.post(
        "/api/execute", json={"capability": "files:look", "args": {"path": nowhere}}
    )
    again = answer.json()
    assert again["status"] == "success", again
    assert again["result"] == {"took": "false"}
    assert again["capability_id"] == capability

    async def both_paths() -> bool:
        learning = (await harness.http.get(f"/api/capabilities/{capability}")).json()["learning"]
        return {tuple(p["path"]) for p in learning["paths"]} == {
            ("n1", "d1", "n2"),
            ("n1", "d1", "n3"),
        }

    await eventually(both_paths)
    hits = (
        await harness.http.post("/api/discover", json={"intent": "check that a document exists"})
    ).json()["hits"]
    assert "files:look" in [hit["name"] for hit in hits]


async def test_nothing_runs_before_it_is_approved_and_nothing_after_it_is_denied(
    harness: StackHarness,
) -> None:
    asked = (
        await harness.http.post(
            "/api/execute", json={"code": "return await mcp.counting.step({ n: 900 });"}
        )
    ).json()
    assert asked["status"] == "approval_required"
    assert any("counting:step" in reason for reason in asked["approval"]["reasons"])
    denied = await decide(harness, str(asked["workflow_id"]), decision="deny")
    assert denied.status_code == 200
    again = await decide(harness, str(asked["workflow_id"]), decision="approve")
    assert again.status_code == 409, again.text
    ended = await harness.end_of(str(asked["workflow_id"]))
    assert ended["status"] == "error"
    assert cast(Json, ended["error"])["kind"] == "denied"
    assert harness.steps()[900] == 0


async def test_the_same_key_runs_once(harness: StackHarness) -> None:
    key = str(uuid4())
    first = await harness.execute("return await mcp.pml_stub.echo({ n: 1 });", idempotency_key=key)
    second = await harness.execute("return await mcp.pml_stub.echo({ n: 1 });", idempotency_key=key)
    assert first["workflow_id"] == second["workflow_id"]
    assert second["result"] == {"n": 1}
    other = await harness.http.post(
        "/api/execute",
        json={"code": "return await mcp.pml_stub.echo({ n: 2 });", "idempotency_key": key},
    )
    assert other.status_code == 409


async def test_broken_typescript_is_reported_with_line_and_column(harness: StackHarness) -> None:
    error = await _error(harness, "const a = 1;\nconst b = (;\n")
    assert error["kind"] == "syntax"
    assert error["line"] == 2
    assert error["column"]


async def test_an_unknown_tool_is_reported_with_similar_names(harness: StackHarness) -> None:
    error = await _error(harness, "return await mcp.counting.stepp({ n: 1 });")
    assert error["kind"] == "rejected"
    assert "counting:step" in str(error)


async def test_a_failing_tool_is_reported_with_node_and_arguments(harness: StackHarness) -> None:
    error = await _error(harness, 'return await mcp.counting.fail({ why: "no paper" });')
    assert error["kind"] == "tool_error"
    assert "no paper" in str(error["message"])
    assert error["tool"] == "counting:fail"
    assert error["node_id"] == "n1"
    assert error["arguments"] == {"why": "no paper"}


async def test_a_failing_tool_can_be_caught_by_the_program(harness: StackHarness) -> None:
    answer = await harness.execute(
        'try { await mcp.counting.fail({ why: "x" }); } catch (e) { return "caught"; }'
    )
    assert answer["status"] == "success", answer
    assert answer["result"] == "caught"


async def test_an_error_of_the_program_keeps_the_authors_line(harness: StackHarness) -> None:
    error = await _error(
        harness, 'const r = await mcp.pml_stub.echo({});\n\nthrow new Error("mine");\n'
    )
    assert error["kind"] == "user_error"
    assert error["line"] == 3


async def test_a_program_that_never_ends_is_stopped(harness: StackHarness) -> None:
    error = await _error(
        harness,
        "await mcp.pml_stub.echo({});\nwhile (true) { /* busy */ }",
        timeout=1,  # waits: it is over
    )
    assert error["kind"] == "timeout"


async def test_bad_requests_are_refused_with_the_reason(harness: StackHarness) -> None:
    broken = await harness.http.post(
        "/api/execute", content=b'{"code": ', headers={"content-type": "application/json"}
    )
    assert broken.status_code == 422
    wrong = await harness.http.post("/api/execute", json={"code": 7})
    assert wrong.status_code == 422
    assert "code" in wrong.text
    large = await harness.http.post("/api/execute", json={"code": "x" * 2_000_000})
    assert large.status_code == 413
    unknown = await harness.http.get(f"/api/workflows/{uuid4()}")
    assert unknown.status_code == 404


async def test_an_mcp_client_lists_and_calls_the_same_things(harness: StackHarness) -> None:
    async with Client(f"{harness.stack.url}/mcp") as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert {"pml_execute", "pml_discover", "counting_peek", "counting_step"} <= names
        direct = await client.call_tool("counting_peek", {"path": "/nowhere"})
        assert direct.structured_content == {"path": "/nowhere", "exists": False}
        ran = await client.call_tool(
            "pml_execute", {"code": "return await mcp.pml_stub.echo({ over: 'mcp' });"}
        )
        assert ran.structured_content is not None
        assert ran.structured_content["status"] == "success"
        assert ran.structured_content["result"] == {"over": "mcp"}
        asked = await client.call_tool("counting_step", {"n": 901})
        assert asked.is_error
        assert harness.steps()[901] == 0


async def test_an_approved_dynamic_call_reaches_tools_that_need_no_approval(
    harness: StackHarness,
) -> None:
    code = "return await mcp.counting[args.tool](args.given);"
    looked = await harness.execute(code, args={"tool": "peek", "given": {"path": "/nowhere"}})
    assert looked["status"] == "success", looked
    assert looked["result"] == {"path": "/nowhere", "exists": False}
