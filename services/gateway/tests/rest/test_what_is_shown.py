"""Calls shown to approvers over REST, and decisions that name their digest."""

from uuid import uuid4

import pytest

from pml_gateway.domain.api import shown_calls
from services.gateway.tests.support.harness import World, Worlds

pytestmark = pytest.mark.integration


async def _approval(w: World, workflow_id: object, **query: str) -> dict[str, object]:
    answer = await w.http.get(f"/api/workflows/{workflow_id}/approval", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_list_response_and_approval_show_the_same_calls(world: Worlds) -> None:
    async with world() as w:
        asked = await w.execute("ask")
        approval = await _approval(w, asked["workflow_id"])
        (listed,) = (await w.http.get("/api/approvals")).json()["approvals"]
        assert approval["calls"] == listed["calls"] == asked["approval"]["calls"]
        digests = {approval["shown_digest"], listed["shown_digest"]}
        assert digests == {asked["approval"]["shown_digest"]}
        assert (approval["complete"], approval["whole"], approval["dynamic_calls"]) == (
            True,
            True,
            [],
        )
        assert listed["whole_at"] == f"/api/workflows/{asked['workflow_id']}/approval"


async def test_a_changed_program_is_shown_as_it_will_run(world: Worlds) -> None:
    async with world() as w:
        asked = await w.execute("```\nask\n```")
        approval = await _approval(w, asked["workflow_id"])
        (listed,) = (await w.http.get("/api/approvals")).json()["approvals"]
        assert approval["code"] == listed["code"] == asked["approval"]["code"] == "ask"
        assert approval["notices"] == listed["notices"] == asked["notices"]
        assert (await w.workflow(asked["workflow_id"]))["code"] == "```\nask\n```"


@pytest.mark.parametrize("whole", [True, False])
async def test_a_decision_is_stored_with_the_digest_shown_its_maker_and_time(
    whole: bool, world: Worlds
) -> None:
    async with world() as w:
        asked = await w.execute("ask")
        digest = asked["approval"]["shown_digest"]
        shown = {"digest": digest, "whole": whole}
        answer = await w.decide(asked["workflow_id"], "approve", shown=shown, wait=True)
        assert answer.json()["status"] == "success"
        approval = await _approval(w, asked["workflow_id"])
        assert approval["shown"] == shown
        assert (approval["outcome"], approval["decided_by"]) == ("approved", "approver:noor")
        assert approval["decided_at"]
        assert approval["shown_digest"] == digest, "it can be looked at later"


async def test_a_decision_with_another_digest_is_stale(world: Worlds) -> None:
    async with world() as w:
        asked = await w.execute("ask")
        shown = {"digest": "0" * 64, "whole": True}
        for decision in ("approve", "deny"):
            answer = await w.decide(asked["workflow_id"], decision, shown=shown)
            assert answer.status_code == 409
            assert "review it again" in answer.json()["error"]["message"]
        assert (await w.workflow(asked["workflow_id"]))["status"] == "approval_required"


async def test_an_invalid_digest_is_rejected(world: Worlds) -> None:
    async with world() as w:
        asked = await w.execute("ask")
        shown = {"digest": "xyz", "whole": True}
        answer = await w.decide(asked["workflow_id"], "approve", shown=shown)
        assert answer.status_code == 422


async def test_an_incomplete_listing_can_be_denied_but_not_approved(
    monkeypatch: pytest.MonkeyPatch, world: Worlds
) -> None:
    monkeypatch.setattr(shown_calls, "MAX_CALLS", 0)
    async with world() as w:
        asked = await w.execute("ask")
        assert not (await _approval(w, asked["workflow_id"]))["complete"]
        answer = await w.decide(asked["workflow_id"], "approve")
        assert answer.status_code == 409
        assert "more calls than can be shown" in answer.json()["error"]["message"]
        assert (await w.decide(asked["workflow_id"], "deny")).status_code == 200


async def test_a_workflow_that_needed_no_approval_has_none(world: Worlds) -> None:
    async with world() as w:
        done = await w.execute("return 1;")
        for workflow_id in (done["workflow_id"], uuid4()):
            answer = await w.http.get(f"/api/workflows/{workflow_id}/approval")
            assert answer.status_code == 404
