"""On the whole stack only who holds the approver's key decides."""

from pathlib import Path
from typing import cast

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from pml_local.approver import read_key, user_name
from tests.e2e.deciding import decide
from tests.e2e.harness import Json, World

pytestmark = pytest.mark.e2e


async def _waiting(world: World, n: int) -> str:
    code = f"return await mcp.counting.step({{ n: {n} }});"
    asked = await world.http.post("/api/execute", json={"code": code})
    assert asked.json()["status"] == "approval_required", asked.text
    return str(asked.json()["workflowId"])


async def test_a_tool_server_has_no_key_no_way_to_it_and_gets_401(world: World) -> None:
    workflow = await _waiting(world, 960)
    args = {"url": world.stack.url, "workflow": workflow}
    ended = await world.execute("return await mcp.counting.intrude(args);", args=args)
    found = cast(Json, ended["result"])
    assert set(cast(list[int], found["statuses"])) == {401}
    key, file = read_key(world.stack.approver_key), world.stack.approver_key
    environment = cast(dict[str, str], found["environment"])
    assert not [name for name, value in environment.items() if key in value]
    assert not [name for name, value in environment.items() if str(file.parent) in value]
    assert not file.is_relative_to(str(found["folder"]))
    assert (await world.workflow(workflow))["status"] == "approval_required"
    assert world.steps()[960] == 0


async def test_the_agent_gets_401_over_rest_and_has_no_word_for_it_over_mcp(world: World) -> None:
    workflow = await _waiting(world, 961)
    path = f"/api/workflows/{workflow}/approval"
    refused = await world.http.post(path, json={"decision": "approve"})
    assert refused.status_code == 401
    assert "pml approvals approve" in refused.json()["error"]["message"]
    async with httpx2.AsyncClient(headers=world.approver, timeout=30.0) as http:
        transport = streamable_http_client(f"{world.stack.url}/mcp", http_client=http)
        async with Client(transport) as client:
            names = {tool.name for tool in (await client.list_tools()).tools}
            assert not [name for name in names if "appro" in name or "decid" in name]
            asked = await client.call_tool("counting_step", {"n": 962})
    assert (asked.structured_content or {})["status"] == "approval_required"
    assert world.steps()[961] == world.steps()[962] == 0


async def test_who_holds_the_key_decides_and_is_named(world: World) -> None:
    workflow = await _waiting(world, 963)
    assert (await decide(world, workflow, decision="approve", wait=True)).is_success
    approval = cast(Json, (await world.workflow(workflow))["approval"])
    assert approval["decided_by"] == f"approver:{user_name()}"
    assert approval["principal"] == "local"
    assert world.steps()[963] == 1


def test_the_key_lies_outside_of_the_data_for_its_owner_alone(world: World) -> None:
    file: Path = world.stack.approver_key
    assert file.stat().st_mode & 0o777 == 0o600
    assert not file.is_relative_to(world.stack.home)
    services = [state.pid for name, state in world.stack.parts.items() if name != "postgres"]
    for pid in services:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
        assert read_key(file).encode() not in environment
        assert str(file).encode() not in environment
