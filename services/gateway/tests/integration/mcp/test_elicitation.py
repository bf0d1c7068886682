"""Approvals decided by the user of an agent's client, through the official client."""

import asyncio
from collections.abc import AsyncGenerator
from uuid import uuid4

import pytest
from mcp import MCPError
from mcp_types import ElicitRequest, ElicitResult, InputRequiredResult

from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.contracts.tool import ToolDefinition
from services.gateway.tests.integration.mcp.asked_users import (
    APPROVE,
    DENY,
    Asked,
    User,
    asked,
    asked_as,
    said,
    text,
)
from services.gateway.tests.support.builders import READ
from services.gateway.tests.support.harness import Json, Worlds

pytestmark = pytest.mark.integration

ASK: Json = {"code": "ask", "args": {"path": "/a"}, "intent": "tidy"}


@pytest.fixture
async def a(world: Worlds) -> AsyncGenerator[Asked]:
    async with asyncio.timeout(PATIENCE_S), asked(world) as one:
        yield one


@pytest.fixture
async def e(a: Asked) -> Asked:
    """A gateway where forms count."""
    await a.let_elicit()
    return a


async def test_a_user_approves_in_the_client_and_the_call_returns_the_result(
    e: Asked, mode: str
) -> None:
    user = User([APPROVE])
    async with e.client(user, mode) as client:
        done = said(await client.call_tool("pml_execute", ASK))
    assert done["status"] == "success"
    (form,) = user.forms
    assert "? n1 fs:read" in form.message
    assert "What for, in the agent's words: tidy" in form.message
    assert form.requested_schema["required"] == ["decision"]
    approval = await e.approval(done["workflowId"])
    assert (approval["outcome"], approval["decided_by"]) == ("approved", "mira")
    assert approval["decided_through"] == {
        "way": "elicitation",
        "client": "desk\x1b",
        "client_version": "4.2",
    }
    assert approval["shown"] == {"digest": approval["shown_digest"], "whole": True}
    assert len(e.w.peers.runs) == 1


@pytest.mark.parametrize(
    ("answer", "reason"), [(DENY, "not today"), (ElicitResult(action="decline"), None)]
)
async def test_who_denies_or_declines_ends_the_workflow(
    e: Asked, mode: str, answer: ElicitResult, reason: str | None
) -> None:
    async with e.client(User([answer]), mode) as client:
        result = await client.call_tool("pml_execute", ASK)
    assert result.is_error
    error = said(result)["error"]
    assert error["kind"] == "denied"
    assert reason is None or reason in error["message"]
    assert e.w.peers.runs == []


async def test_who_dismisses_the_form_decides_nothing(e: Asked, mode: str) -> None:
    user = User([ElicitResult(action="cancel")])
    async with e.client(user, mode) as client:
        left = said(await client.call_tool("pml_execute", ASK))
        assert left["status"] == "approval_required"
        assert left["next"]["call"]["tool"] == "pml_get_task_result"
        user.answers.append(APPROVE)
        asked_for = {"workflow_id": left["workflowId"], "wait_s": 20}
        done = said(await client.call_tool("pml_get_task_result", asked_for))
    assert done["status"] == "success"
    assert len(user.forms) == 2
    assert user.forms[0].message == user.forms[1].message


async def test_a_tool_is_approved_likewise(e: Asked, mode: str) -> None:
    user = User([APPROVE])
    e.w.servers.listed = {"fs": (READ, ToolDefinition(server="fs", name="ask"))}
    async with e.client(user, mode) as client:
        result = await client.call_tool("fs_ask", {"path": "/a"})
    assert len(user.forms) == 1
    assert not result.is_error, text(result)


async def test_others_are_answered_as_before(a: Asked, mode: str) -> None:
    """A client whose credential may not elicit, and one that shows no forms."""
    user = User([])
    async with a.client(user, mode) as client:
        left = said(await client.call_tool("pml_execute", ASK))
    await a.let_elicit()
    async with a.client(None, mode) as client:
        again = said(await client.call_tool("pml_execute", ASK))
    assert left["status"] == again["status"] == "approval_required"
    assert user.forms == []


async def _form(e: Asked, call: Json) -> tuple[InputRequiredResult, str]:
    """Make a call and return the form that it is answered with, and its state."""
    async with e.client(User([])) as client:
        form = await client.session.call_tool("pml_execute", call, allow_input_required=True)
    assert isinstance(form, InputRequiredResult)
    assert form.request_state is not None
    assert form.input_requests is not None
    assert isinstance(form.input_requests["approval"], ElicitRequest)
    return form, form.request_state


async def _again(e: Asked, call: Json, state: str, answer: ElicitResult = APPROVE) -> Json | str:
    """Make the call again with an answer; return the structured answer, or the error."""
    async with e.client(User([])) as client:
        try:
            result = await client.session.call_tool(
                "pml_execute",
                call,
                input_responses={"approval": answer},
                request_state=state,
                allow_input_required=True,
            )
        except MCPError as error:
            return str(error)
    assert not isinstance(result, InputRequiredResult)
    return said(result)


async def test_forged_altered_and_foreign_states_decide_nothing(e: Asked) -> None:
    _, state = await _form(e, ASK)
    other: Json = {**ASK, "args": {"path": "/b"}}
    flipped = state[:-2] + ("A" if state[-2] != "A" else "B") + state[-1]
    tried = [(ASK, flipped), (ASK, "v1.x"), (ASK, ""), (ASK, str(uuid4())), (other, state)]
    for call, given in tried:
        assert "requestState is invalid" in str(await _again(e, call, given))
    # A state of the same approval, of another credential.
    async with asked_as("eve", e) as eve:
        assert "requestState is invalid" in str(await _again(eve, ASK, state))
    assert e.w.peers.runs == []
    done = await _again(e, ASK, state)
    assert isinstance(done, dict)
    assert done["status"] == "success"


async def test_a_state_decides_once(e: Asked) -> None:
    _, state = await _form(e, ASK)
    denied = await _again(e, ASK, state, DENY)
    again = await _again(e, ASK, state, APPROVE)
    assert isinstance(denied, dict)
    assert isinstance(again, dict)
    assert denied["error"]["kind"] == again["error"]["kind"] == "denied"
    assert "denied workflow" in again["notices"][0]
    assert e.w.peers.runs == []


async def test_an_answer_counts_only_while_the_credential_may_elicit(e: Asked) -> None:
    _, state = await _form(e, ASK)
    set_off = await e.let_elicit(may=False)
    assert (set_off["may_elicit"], set_off["set_by"]) == (False, "approver:noor")
    left = await _again(e, ASK, state)
    assert isinstance(left, dict)
    assert left["status"] == "approval_required"
    assert "pml approvals elicitation on" in left["notices"][0]
    assert e.w.peers.runs == []


async def test_an_answer_that_is_none_is_refused(e: Asked) -> None:
    _, state = await _form(e, ASK)
    nonsense = ElicitResult(action="accept", content={"decision": "maybe"})
    async with e.client(User([nonsense])) as client:
        result = await client.call_tool("pml_execute", ASK)
    assert "must be approve or deny" in text(result)
    done = await _again(e, ASK, state)
    assert isinstance(done, dict)
    assert done["status"] == "success"


async def test_a_decision_before_the_answer_stands(e: Asked) -> None:
    form, state = await _form(e, ASK)
    assert form.input_requests is not None
    workflow = (await e.w.http.get("/api/approvals")).json()["approvals"][0]["workflow_id"]
    assert (await e.w.decide(workflow, "approve")).status_code == 200
    done = await _again(e, ASK, state, DENY)
    assert isinstance(done, dict)
    assert done["status"] == "success"
    assert "approver:noor approved workflow" in done["notices"][0]


async def test_a_form_is_shown_only_to_the_caller_of_the_workflow(e: Asked) -> None:
    """The workflow of another agent of the scope is waited for, and not decided."""
    async with e.client(None) as client:
        left = said(await client.call_tool("pml_execute", ASK))
    async with asked_as("eve", e) as eve, eve.client(User([])) as client:
        seen = said(
            await client.call_tool("pml_get_task_result", {"workflow_id": left["workflowId"]})
        )
    assert seen["status"] == "approval_required"
