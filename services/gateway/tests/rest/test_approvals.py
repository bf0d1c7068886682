"""Approvals over REST: listed, decided once, and only before they expire."""

import asyncio
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import uuid4

import pytest

from libs.pml_local.tests.support.harness import eventually
from pml_common.contracts.decision import Policy
from pml_common.contracts.gateway import ApprovalDecided
from pml_gateway.domain.api.api import ExecuteRequest
from pml_gateway.domain.workflow.acceptance import IncomingRequest, Program, accepted
from pml_gateway.entrypoints.timers.on_due import on_due
from services.gateway.tests.support.builders import AT, ELSEWHERE, RULES, SCOPE, TERMS
from services.gateway.tests.support.harness import World, Worlds

pytestmark = pytest.mark.integration


async def _decided(w: World, workflow_id: str) -> list[ApprovalDecided]:
    history = await w.parts.bus.history(w.parts.settings.scope, workflow_id)
    return [each.message for each in history if isinstance(each.message, ApprovalDecided)]


async def test_a_pending_approval_is_listed_with_its_subject(world: Worlds) -> None:
    async with world() as w:
        asked = await w.execute("ask", intent="read my notes")
        page = (await w.http.get("/api/approvals")).json()
        assert page["total"] == 1
        (one,) = page["approvals"]
        assert one["workflow_id"] == asked["workflow_id"]
        assert one["approval_id"] == asked["approval"]["id"]
        assert one["intent"] == "read my notes"
        assert one["tools"] == ["fs:read"]
        assert one["outcome"] is None
        await w.decide(asked["workflow_id"], "deny")
        assert (await w.http.get("/api/approvals")).json() == {
            "approvals": [],
            "total": 0,
            "next_cursor": None,
        }


async def test_an_approval_starts_the_run_and_a_waiting_caller_gets_the_end(world: Worlds) -> None:
    async with world() as w:
        asked = await w.execute("ask", args={"path": "/a"})
        answer = await w.decide(asked["workflow_id"], "approve", wait=True, reason="fine")
        assert answer.json()["status"] == "success"
        (run,) = w.peers.runs
        assert run.grant.approved_by == "approver:noor"
        view = await w.workflow(asked["workflow_id"])
        assert view["approval"]["outcome"] == "approved"
        assert view["approval"]["reason"] == "fine"
        (decided,) = await _decided(w, asked["workflow_id"])
        assert (decided.outcome, decided.decided_by) == ("approved", "approver:noor")


async def test_without_waiting_an_approval_responds_running(world: Worlds) -> None:
    async with world() as w:
        asked = await w.execute("ask hang")
        answer = (await w.decide(asked["workflow_id"], "approve")).json()
        assert (answer["status"], answer["workflow_id"]) == ("running", asked["workflow_id"])


async def test_a_denial_ends_the_workflow_and_nothing_runs(world: Worlds) -> None:
    async with world() as w:
        asked = await w.execute("ask")
        body = (await w.decide(asked["workflow_id"], "deny", reason="no", wait=True)).json()
        assert body["status"] == "error"
        assert body["error"]["message"] == "approver:noor denied it: no"
        assert w.peers.runs == []


async def test_a_decision_counts_once(world: Worlds) -> None:
    async with world() as w:
        asked = await w.execute("ask")
        answers = await asyncio.gather(
            *(w.decide(asked["workflow_id"], "approve") for _ in range(4)),
            *(w.decide(asked["workflow_id"], "deny") for _ in range(4)),
        )
        assert sorted(answer.status_code for answer in answers) == [200] + [409] * 7
        late = await w.decide(asked["workflow_id"], "approve")
        assert "already" in late.json()["error"]["message"]
        assert len(await _decided(w, asked["workflow_id"])) == 1


async def test_a_decision_for_another_approval_is_stale(world: Worlds) -> None:
    async with world() as w:
        asked = await w.execute("ask")
        stale = await w.decide(asked["workflow_id"], "approve", approval_id=str(uuid4()))
        assert stale.status_code == 409
        named = await w.decide(
            asked["workflow_id"], "approve", approval_id=asked["approval"]["id"], wait=True
        )
        assert named.json()["status"] == "success"


async def test_a_workflow_without_a_pending_approval_cannot_be_decided(world: Worlds) -> None:
    async with world() as w:
        done = await w.execute("return 1;")
        answer = await w.decide(done["workflow_id"], "approve")
        assert answer.status_code == 409
        assert "waits for no approval: it is succeeded" in answer.json()["error"]["message"]


async def test_a_workflow_that_is_unknown_or_of_another_scope_cannot_be_decided(
    world: Worlds,
) -> None:
    async with world() as w:
        theirs = accepted(
            IncomingRequest(
                ELSEWHERE,
                "eve",
                ExecuteRequest(code="ask"),
                Program("ask"),
                uuid4(),
                "k",
                AT,
                Policy(),
            ),
            TERMS,
            RULES,
        )
        await w.parts.stores.workflows.accept(theirs, (theirs.requested,))
        for workflow_id in (uuid4(), theirs.workflow_id):
            answer = await w.decide(workflow_id, "approve")
            assert answer.status_code == 404
            assert (await w.http.get(f"/api/workflows/{workflow_id}")).status_code == 404
            events = await w.http.get(f"/api/workflows/{workflow_id}/events")
            assert events.status_code == 404
        assert (await w.http.get("/api/workflows")).json()["total"] == 0


async def test_an_expired_approval_ends_the_workflow_once(world: Worlds) -> None:
    async with world() as w:
        asked = await w.execute("ask")
        parts = w.parts
        tick = partial(on_due, SCOPE, parts.workflows, parts.stores.workflows, parts.tools)
        await tick(parts.bus.now)
        assert (await w.workflow(asked["workflow_id"]))["status"] == "approval_required"
        for _ in range(2):
            await tick(lambda: parts.bus.now() + timedelta(hours=2))
        view = await w.workflow(asked["workflow_id"])
        assert (view["status"], view["error"]["kind"]) == ("error", "denied")
        assert view["approval"]["outcome"] == "expired"
        (decided,) = await _decided(w, asked["workflow_id"])
        assert decided.outcome == "expired"
        late = await w.decide(asked["workflow_id"], "approve")
        assert late.status_code == 409
        assert w.peers.runs == []


async def test_a_decision_after_the_expiry_but_before_the_timer_is_too_late(world: Worlds) -> None:
    async with world(gateway_approval_ttl_s=0.01) as w:
        asked = await w.execute("ask")
        expires_at = datetime.fromisoformat(asked["approval"]["expires_at"])
        await eventually(lambda: datetime.now(UTC) > expires_at)
        answer = await w.decide(asked["workflow_id"], "approve")
        assert answer.status_code == 409
        assert "ended at" in answer.json()["error"]["message"]
        assert w.peers.runs == []
