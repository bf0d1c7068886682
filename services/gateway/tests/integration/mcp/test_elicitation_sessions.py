"""Approvals decided in the client while the call waits (sessions, before 2026-07-28)."""

import asyncio
from collections.abc import AsyncGenerator

import pytest
from mcp import MCPError
from mcp_types import ElicitResult

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from services.gateway.tests.integration.mcp.asked_users import (
    APPROVE,
    Asked,
    User,
    asked,
    said,
)
from services.gateway.tests.support.harness import Json, Worlds

pytestmark = pytest.mark.integration

ASK: Json = {"code": "ask", "args": {"path": "/a"}}


@pytest.fixture
async def e(world: Worlds) -> AsyncGenerator[Asked]:
    async with asyncio.timeout(PATIENCE_S), asked(world) as one:
        await one.let_elicit()
        yield one


class Hesitating:
    """Looks at a form until it is told to answer, or the form is taken away."""

    def __init__(self) -> None:
        self.may_answer = asyncio.Event()
        self.taken_away = False

    async def answer(self) -> ElicitResult:
        try:
            await self.may_answer.wait()
        except asyncio.CancelledError:
            self.taken_away = True
            raise
        return APPROVE


async def _pending(e: Asked) -> Json:
    approvals = (await e.w.http.get("/api/approvals")).json()["approvals"]
    return approvals[0]


async def test_a_decision_elsewhere_wins_and_the_form_is_taken_away(e: Asked) -> None:
    hesitating = Hesitating()
    user = User([hesitating.answer])
    async with e.client(user, "legacy") as client, asyncio.TaskGroup() as group:
        calling = group.create_task(client.call_tool("pml_execute", ASK))
        await eventually(lambda: user.forms)
        workflow = (await _pending(e))["workflow_id"]
        assert (await e.w.decide(workflow, "approve")).status_code == 200
        done = said(await calling)
        assert (done["status"], done["workflowId"]) == ("success", workflow)
        await eventually(lambda: hesitating.taken_away)
    assert (await e.approval(workflow))["decided_by"] == "approver:noor"


async def test_of_several_callers_the_first_answer_decides_for_all(e: Asked) -> None:
    slow, quick = Hesitating(), Hesitating()
    users = [User([slow.answer]), User([quick.answer])]
    async with (
        e.client(users[0], "legacy") as one,
        e.client(users[1], "legacy") as other,
        asyncio.TaskGroup() as group,
    ):
        calls = [group.create_task(each.call_tool("pml_execute", ASK)) for each in (one, other)]
        await eventually(lambda: all(user.forms for user in users))
        quick.may_answer.set()
        answers = [said(await call) for call in calls]
        await eventually(lambda: slow.taken_away)
    assert [answer["status"] for answer in answers] == ["success", "success"]
    assert answers[0]["workflowId"] == answers[1]["workflowId"]
    assert len(e.w.peers.runs) == 1


async def test_a_call_cancelled_during_its_form_leaves_the_workflow_waiting(e: Asked) -> None:
    hesitating = Hesitating()
    user = User([hesitating.answer, APPROVE])
    async with e.client(user, "legacy") as client:
        calling = asyncio.create_task(client.call_tool("pml_execute", ASK))
        await eventually(lambda: user.forms)
        workflow = (await _pending(e))["workflow_id"]
        calling.cancel()
        await asyncio.gather(calling, return_exceptions=True)
        await eventually(lambda: hesitating.taken_away)
        done = said(await client.call_tool("pml_execute", ASK))
    assert (done["status"], done["workflowId"]) == ("success", workflow)


async def test_a_client_that_errs_is_answered_with_the_way_on(e: Asked) -> None:
    async def err() -> ElicitResult:
        raise MCPError(-1, "no screen")

    async with e.client(User([err]), "legacy") as client:
        left = said(await client.call_tool("pml_execute", ASK))
    assert left["status"] == "approval_required"
    assert left["next"]["person"] is not None
