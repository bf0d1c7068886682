"""Only the holder of the approver's key can decide, on the whole stack."""

from pathlib import Path
from typing import cast

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_local.approver import read_key, user_name
from tests.e2e.deciding import decide
from tests.e2e.harness import Json, StackHarness

pytestmark = pytest.mark.e2e


async def _waiting(harness: StackHarness, n: int) -> str:
    code = f"return await mcp.counting.step({{ n: {n} }});"
    asked = await harness.http.post("/api/execute", json={"code": code})
    assert asked.json()["status"] == "approval_required", asked.text
    return str(asked.json()["workflow_id"])


async def test_a_tool_server_cannot_get_the_key_and_gets_401(harness: StackHarness) -> None:
    workflow = await _waiting(harness, 960)
    args = {"url": harness.stack.url, "workflow": workflow}
    ended = await harness.execute("return await mcp.counting.intrude(args);", args=args)
    found = cast(Json, ended["result"])
    assert set(cast(list[int], found["statuses"])) == {401}
    key, file = read_key(harness.stack.approver_key), harness.stack.approver_key
    environment = cast(dict[str, str], found["environment"])
    assert not [name for name, value in environment.items() if key in value]
    assert not [name for name, value in environment.items() if str(file.parent) in value]
    assert not file.is_relative_to(str(found["folder"]))
    assert (await harness.workflow(workflow))["status"] == "approval_required"
    assert harness.steps()[960] == 0


async def test_the_agent_gets_401_over_rest_and_has_no_decision_over_mcp(
    harness: StackHarness,
) -> None:
    workflow = await _waiting(harness, 961)
    path = f"/api/workflows/{workflow}/approval"
    refused = await harness.http.post(path, json={"decision": "approve"})
    assert refused.status_code == 401
    assert "pml approvals approve" in refused.json()["error"]["message"]
    async with httpx2.AsyncClient(headers=harness.approver, timeout=PATIENCE_S) as http:
        transport = streamable_http_client(f"{harness.stack.url}/mcp", http_client=http)
        async with Client(transport) as client:
            names = {tool.name for tool in (await client.list_tools()).tools}
            assert not [name for name in names if "appro" in name or "decid" in name]
            asked = await client.call_tool("counting_step", {"n": 962})
    assert (asked.structured_content or {})["status"] == "approval_required"
    assert harness.steps()[961] == harness.steps()[962] == 0


async def test_the_holder_of_the_key_decides_and_is_named(harness: StackHarness) -> None:
    workflow = await _waiting(harness, 963)
    assert (await decide(harness, workflow, decision="approve", wait=True)).is_success
    approval = cast(Json, (await harness.workflow(workflow))["approval"])
    assert approval["decided_by"] == f"approver:{user_name()}"
    assert approval["principal"] == "local"
    assert harness.steps()[963] == 1


def test_the_key_is_outside_the_data_folder_and_private(harness: StackHarness) -> None:
    file: Path = harness.stack.approver_key
    assert file.stat().st_mode & 0o777 == 0o600
    assert not file.is_relative_to(harness.stack.home)
    services = [state.pid for name, state in harness.stack.parts.items() if name != "postgres"]
    for pid in services:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
        assert read_key(file).encode() not in environment
        assert str(file).encode() not in environment
