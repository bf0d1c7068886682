"""The main job and its bad inputs, through the whole stack."""

from typing import cast
from uuid import uuid4

import pytest
from mcp.client.client import Client

from libs.pml_local.tests.support.harness import eventually
from tests.e2e.deciding import decide
from tests.e2e.harness import Json, World

pytestmark = pytest.mark.e2e

BRANCHES = """
const found = await mcp.counting.peek({ path: args.path });
if (found.exists) {
  return await mcp.pml_stub.echo({ took: "true" });
} else {
  return await mcp.pml_stub.echo({ took: "false" });
}
"""


async def _error(world: World, code: str, **more: object) -> Json:
    answer = await world.execute(code, **more)
    assert answer["status"] == "error", answer
    return cast(Json, answer["error"])


async def test_a_program_runs_is_learned_and_runs_again_by_name(world: World) -> None:
    here, nowhere = str(world.folder), str(world.folder / "nowhere")
    first = await world.execute(
        BRANCHES, name="files:look", intent="see whether a file is there", args={"path": here}
    )
    assert first["status"] == "success", first
    assert first["result"] == {"took": "true"}
    assert first["capabilityName"] == "files:look"
    capability = str(first["capabilityId"])

    async def listed() -> bool:
        return (await world.http.get(f"/api/capabilities/{capability}")).json().get("listed", False)

    await eventually(listed, within=30.0)
    answer = await world.http.post(
        "/api/execute", json={"capability": "files:look", "args": {"path": nowhere}}
    )
    again = answer.json()
    assert again["status"] == "success", again
    assert again["result"] == {"took": "false"}
    assert again["capabilityId"] == capability

    async def both_paths() -> bool:
        learning = (await world.http.get(f"/api/capabilities/{capability}")).json()["learning"]
        return {tuple(p["path"]) for p in learning["paths"]} == {
            ("n1", "d1", "n2"),
            ("n1", "d1", "n3"),
        }

    await eventually(both_paths, within=30.0)
    hits = (
        await world.http.post("/api/discover", json={"intent": "check that a document exists"})
    ).json()["hits"]
    assert "files:look" in [hit["name"] for hit in hits]


async def test_nothing_runs_before_it_is_approved_and_nothing_after_it_is_denied(
    world: World,
) -> None:
    asked = (
        await world.http.post(
            "/api/execute", json={"code": "return await mcp.counting.step({ n: 900 });"}
        )
    ).json()
    assert asked["status"] == "approval_required"
    assert any("counting:step" in reason for reason in asked["approval"]["reasons"])
    denied = await decide(world, str(asked["workflowId"]), decision="deny")
    assert denied.status_code == 200
    again = await decide(world, str(asked["workflowId"]), decision="approve")
    assert again.status_code == 409, again.text
    ended = await world.end_of(str(asked["workflowId"]))
    assert ended["status"] == "error"
    assert cast(Json, ended["error"])["kind"] == "denied"
    assert world.steps()[900] == 0


async def test_the_same_key_runs_once(world: World) -> None:
    key = str(uuid4())
    first = await world.execute("return await mcp.pml_stub.echo({ n: 1 });", idempotency_key=key)
    second = await world.execute("return await mcp.pml_stub.echo({ n: 1 });", idempotency_key=key)
    assert first["workflowId"] == second["workflowId"]
    assert second["result"] == {"n": 1}
    other = await world.http.post(
        "/api/execute",
        json={"code": "return await mcp.pml_stub.echo({ n: 2 });", "idempotency_key": key},
    )
    assert other.status_code == 409


async def test_broken_typescript_is_told_with_line_and_column(world: World) -> None:
    error = await _error(world, "const a = 1;\nconst b = (;\n")
    assert error["kind"] == "syntax"
    assert error["line"] == 2
    assert error["column"]


async def test_an_unknown_tool_names_what_is_near(world: World) -> None:
    error = await _error(world, "return await mcp.counting.stepp({ n: 1 });")
    assert error["kind"] == "rejected"
    assert "counting:step" in str(error)


async def test_a_failing_tool_is_told_with_node_and_arguments(world: World) -> None:
    error = await _error(world, 'return await mcp.counting.fail({ why: "no paper" });')
    assert error["kind"] == "tool_error"
    assert "no paper" in str(error["message"])
    assert error["tool"] == "counting:fail"
    assert error["node_id"] == "n1"
    assert error["arguments"] == {"why": "no paper"}


async def test_a_failing_tool_can_be_caught_by_the_program(world: World) -> None:
    answer = await world.execute(
        'try { await mcp.counting.fail({ why: "x" }); } catch (e) { return "caught"; }'
    )
    assert answer["status"] == "success", answer
    assert answer["result"] == "caught"


async def test_an_error_of_the_program_keeps_the_authors_line(world: World) -> None:
    error = await _error(
        world, 'const r = await mcp.pml_stub.echo({});\n\nthrow new Error("mine");\n'
    )
    assert error["kind"] == "user_error"
    assert error["line"] == 3


async def test_a_program_that_never_ends_is_stopped(world: World) -> None:
    error = await _error(
        world, "await mcp.pml_stub.echo({});\nwhile (true) { /* busy */ }", timeout=1
    )
    assert error["kind"] == "timeout"


async def test_bad_requests_are_refused_by_what_is_wrong_with_them(world: World) -> None:
    broken = await world.http.post(
        "/api/execute", content=b'{"code": ', headers={"content-type": "application/json"}
    )
    assert broken.status_code == 422
    wrong = await world.http.post("/api/execute", json={"code": 7})
    assert wrong.status_code == 422
    assert "code" in wrong.text
    large = await world.http.post("/api/execute", json={"code": "x" * 2_000_000})
    assert large.status_code == 413
    unknown = await world.http.get(f"/api/workflows/{uuid4()}")
    assert unknown.status_code == 404


async def test_an_mcp_client_lists_and_calls_the_same_things(world: World) -> None:
    async with Client(f"{world.stack.url}/mcp") as client:
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
        assert world.steps()[901] == 0


async def test_a_call_known_only_when_it_runs_reaches_what_needs_no_approval_once_approved(
    world: World,
) -> None:
    code = "return await mcp.counting[args.tool](args.given);"
    looked = await world.execute(code, args={"tool": "peek", "given": {"path": "/nowhere"}})
    assert looked["status"] == "success", looked
    assert looked["result"] == {"path": "/nowhere", "exists": False}
