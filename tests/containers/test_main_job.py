"""The main job on containers: over REST and MCP, with an approval."""

from typing import cast
from uuid import uuid4

import pytest
from mcp.client.client import Client

from libs.pml_local.tests.support.harness import eventually
from tests.containers.stack import ContainerStack
from tests.e2e.agents import answer_of
from tests.e2e.harness import Json

pytestmark = [pytest.mark.containers, pytest.mark.core]

LOOK = """
const found = await mcp.counting.peek({ path: args.path });
if (found.exists) {
  const again = await mcp.counting.peek({ path: args.path + "/more" });
  return { there: true, more: again.exists };
}
return { there: false };
"""
SEE = """
const seen = await mcp.counting.peek({ path: args.path });
return { seen: seen.exists };
"""
NAME, INTENT = "files:look", "see whether a file is there"


async def test_a_program_runs_is_learned_and_runs_again_by_its_name(
    containers: ContainerStack,
) -> None:
    first = await containers.execute(LOOK, name=NAME, intent=INTENT, args={"path": "/counted"})
    assert first["status"] == "success", first
    assert first["result"] == {"there": True, "more": False}
    capability = str(first["capability_id"])

    async def listed() -> bool:
        found = await containers.http.get(f"/api/capabilities/{capability}")
        return found.json().get("listed", False)

    await eventually(listed)
    answer = await containers.http.post(
        "/api/execute", json={"capability": NAME, "args": {"path": "/nowhere"}}
    )
    again = answer.json()
    assert (again["status"], again["result"]) == ("success", {"there": False}), again
    assert again["capability_id"] == capability

    async def both_paths() -> bool:
        found = await containers.http.get(f"/api/capabilities/{capability}")
        return len(found.json()["learning"]["paths"]) == 2

    await eventually(both_paths)
    hits = await containers.http.post("/api/discover", json={"intent": INTENT})
    assert NAME in [hit["name"] for hit in hits.json()["hits"]]


async def test_the_official_client_runs_a_program_and_calls_it_as_a_tool(
    containers: ContainerStack,
) -> None:
    async with Client(f"{containers.url}/mcp") as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert {"pml_execute", "pml_discover", "counting_peek", "counting_step"} <= names
        arguments = {"code": SEE, "name": "files:see", "args": {"path": "/counted"}}
        ran = answer_of(await client.call_tool("pml_execute", arguments))
        assert (ran["status"], ran["result"]) == ("success", {"seen": True}), ran

        async def offered() -> bool:
            return "cap_files_see" in {tool.name for tool in (await client.list_tools()).tools}

        await eventually(offered)
        called = answer_of(await client.call_tool("cap_files_see", {"path": "/nowhere"}))
        assert called == {"seen": False}


async def test_a_program_that_writes_waits_for_the_approvers_key_and_runs_once(
    containers: ContainerStack,
) -> None:
    n = 900
    request = {
        "code": f"return await mcp.counting.step({{ n: {n} }});",
        "idempotency_key": str(uuid4()),
    }
    asked: Json = (await containers.http.post("/api/execute", json=request)).json()
    assert asked["status"] == "approval_required"
    assert any("counting:step" in reason for reason in cast(Json, asked["approval"])["reasons"])  # pyright: ignore[reportUnknownVariableType, reportGeneralTypeIssues]
    workflow = str(asked["workflow_id"])
    path, approve = f"/api/workflows/{workflow}/approval", {"decision": "approve"}
    assert (await containers.http.post(path, json=approve)).status_code == 401
    assert containers.steps()[n] == 0
    await containers.approve(workflow)
    ended = await containers.end_of(workflow)
    assert (ended["status"], ended["result"]) == ("success", {"result": f"step {n} done"}), ended
    again = await containers.http.post(path, json=approve, headers=containers.approver)
    assert again.status_code == 409, again.text
    repeated = (await containers.http.post("/api/execute", json=request)).json()
    assert repeated["workflow_id"] == workflow
    assert containers.steps()[n] == 1
