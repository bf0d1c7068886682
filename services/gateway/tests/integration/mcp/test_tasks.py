"""Long work as tasks, through the official client with the extension (2026-07-28)."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from mcp import MCPError
from mcp.client.extension import advertise
from mcp_types import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    ElicitResult,
)

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.storage.errors import StorageUnavailable
from pml_gateway.adapters.live_workflows import LiveWorkflows
from pml_gateway.domain.api.mcp_tasks import EXTENSION
from pml_gateway.entrypoints.mcp import tasks
from services.gateway.tests.integration.mcp.asked_users import (
    APPROVE,
    DENY,
    Asked,
    User,
    asked,
    asked_as,
    said,
)
from services.gateway.tests.integration.mcp.task_client import Json, Polling, TaskResult, ask
from services.gateway.tests.support.builders import SCOPE
from services.gateway.tests.support.harness import Worlds

pytestmark = pytest.mark.integration

ASK: Json = {"code": "ask", "args": {"path": "/a"}}
HANG: Json = {"code": "hang", "timeout": 30}


@pytest.fixture
async def a(monkeypatch: pytest.MonkeyPatch, world: Worlds) -> AsyncGenerator[Asked]:
    monkeypatch.setattr(tasks, "TASK_AFTER_S", 0.0)
    async with asyncio.timeout(PATIENCE_S), asked(world) as one:
        yield one


async def _begin(a: Asked, client: Any, call: Json) -> Json:
    """Make a call that becomes a task and return the task."""
    created = await client.session.call_tool("pml_execute", call, allow_claimed=True)
    assert isinstance(created, TaskResult)
    return created.model_dump(by_alias=True)


async def test_a_program_that_runs_long_is_polled(a: Asked) -> None:
    polling = Polling()
    async with a.client(None, extensions=[polling]) as client, asyncio.TaskGroup() as group:
        declared = client.server_capabilities.extensions or {}
        assert declared[EXTENSION] == {}
        calling = group.create_task(client.call_tool("pml_execute", HANG))
        await eventually(lambda: len(polling.seen) > 1)
        created, found = polling.seen[:2]
        assert (created["resultType"], created["status"]) == ("task", "working")
        assert found["resultType"] == "complete"
        assert {**found, "resultType": "task"} == created
        a.w.peers.release.set()
        done = said(await calling)
    assert (done["status"], f"{done['workflowId']}:pml_execute") == ("success", created["taskId"])


async def test_a_task_waits_for_a_person_elsewhere_and_for_its_user(a: Asked) -> None:
    """Without forms it waits for the command; with them its user is asked."""
    polling = Polling()
    async with a.client(None, extensions=[polling]) as client, asyncio.TaskGroup() as group:
        calling = group.create_task(client.call_tool("pml_execute", ASK))
        await eventually(lambda: len(polling.seen) > 1)
        workflow = polling.seen[0]["taskId"].split(":")[0]
        assert f"pml approvals approve {workflow}" in polling.seen[1]["statusMessage"]
        assert (await a.w.decide(workflow, "approve")).status_code == 200
        assert said(await calling)["status"] == "success"

    async def approve(request: Json) -> ElicitResult:
        forms.append(request["params"]["message"])
        return APPROVE

    forms: list[str] = []
    # The form of the call itself is not shown yet: the setting is made meanwhile.
    polling = Polling(approve)
    async with a.client(User([]), extensions=[polling]) as client, asyncio.TaskGroup() as group:
        calling = group.create_task(client.call_tool("pml_execute", {**ASK, "fresh": True}))
        await eventually(lambda: len(polling.seen) > 1)
        assert polling.seen[1]["status"] == "working"
        await a.let_elicit()
        done = said(await calling)
    assert done["status"] == "success"
    assert ["? n1 fs:read" in form for form in forms] == [True]
    approval = await a.approval(done["workflowId"])
    assert (approval["decided_by"], approval["decided_through"]["client"]) == ("mira", "desk\x1b")


async def test_a_form_of_the_call_comes_before_its_task(a: Asked) -> None:
    await a.let_elicit()
    user, polling = User([APPROVE, ElicitResult(action="cancel")]), Polling()
    call = {"code": "ask hang", "timeout": 30}
    async with a.client(user, extensions=[polling]) as client, asyncio.TaskGroup() as group:
        calling = group.create_task(client.call_tool("pml_execute", call))
        await eventually(lambda: len(polling.seen) > 1)
        assert len(user.forms) == 1
        a.w.peers.release.set()
        assert said(await calling)["status"] == "success"
        count = len(polling.seen)
        left = said(await client.call_tool("pml_execute", ASK))
    assert left["status"] == "approval_required"
    assert len(polling.seen) == count


async def test_tasks_are_cancelled_answered_and_read_by_their_caller_alone(a: Asked) -> None:
    async with a.client(User([]), extensions=[Polling()]) as client:
        task = await _begin(a, client, ASK)
        session, task_id = client.session, task["taskId"]
        await a.let_elicit()
        (key,) = (await ask(session, "tasks/get", task_id))["inputRequests"]
        others: tuple[Json, ...] = ({"other": {}}, {"approval-1": DENY.model_dump()})
        for ignored in others:
            assert "resultType" in await ask(session, "tasks/update", task_id, ignored)
        with pytest.raises(MCPError, match="is no answer to a form"):
            await ask(session, "tasks/update", task_id, {key: {"x": 1}})
        nonsense: Json = {"action": "accept", "content": {}}
        with pytest.raises(MCPError, match="must be approve or deny"):
            await ask(session, "tasks/update", task_id, {key: nonsense})
        approve = {key: APPROVE.model_dump()}
        async with (
            asked_as("eve", a) as eve,
            eve.client(User([]), extensions=[Polling()]) as other,
        ):
            for method in ("tasks/get", "tasks/update", "tasks/cancel"):
                with pytest.raises(MCPError, match="no workflow"):
                    await ask(other.session, method, task_id, approve)
        await a.let_elicit(may=False)
        await ask(session, "tasks/update", task_id, approve)
        assert (await ask(session, "tasks/get", task_id))["status"] == "working"
        assert a.w.peers.runs == []
        for _ in range(2):
            await ask(session, "tasks/cancel", task_id)
        ended = await ask(session, "tasks/get", task_id)
        assert ended["status"] == "cancelled"
        assert "mira cancelled it: its task was cancelled" in ended["statusMessage"]
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            with pytest.raises(MCPError) as misrouted:
                await ask(session, method, task_id, approve, routed_as="other")
            assert misrouted.value.error.code == HEADER_MISMATCH
        for bad in ("x", f"{task_id[:-1]}x"[37:], "00000000-0000-0000-0000-000000000007:x"):
            with pytest.raises(MCPError) as unknown:
                await ask(session, "tasks/get", bad)
            assert unknown.value.error.code == INVALID_PARAMS


async def test_others_get_no_tasks(a: Asked) -> None:
    async with a.client(None, extensions=[advertise("com.example/other")]) as client:
        left = said(await client.call_tool("pml_execute", ASK))
        assert left["status"] == "approval_required"
        with pytest.raises(MCPError) as refused:
            await ask(client.session, "tasks/get", f"{left['workflowId']}:pml_execute")
        assert refused.value.error.code == MISSING_REQUIRED_CLIENT_CAPABILITY
        needed: Json = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
        assert refused.value.error.data == needed
    async with a.client(None, "legacy", extensions=[Polling()]) as client:
        again = said(await client.call_tool("pml_execute", ASK))
        assert again["workflowId"] == left["workflowId"]
        with pytest.raises(MCPError) as absent:
            await ask(client.session, "tasks/get", f"{left['workflowId']}:pml_execute")
        assert absent.value.error.code == METHOD_NOT_FOUND
    assert not a.w.parts.notifier.is_awaited(SCOPE, left["workflowId"])


async def test_a_task_that_cannot_be_kept_is_none(
    a: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object) -> None:
        raise StorageUnavailable("no answer")

    monkeypatch.setattr(LiveWorkflows, "settle", refuse)
    polling = Polling()
    async with a.client(None, extensions=[polling]) as client:
        left = said(await client.call_tool("pml_execute", ASK))
    assert (left["status"], polling.seen) == ("approval_required", [])
