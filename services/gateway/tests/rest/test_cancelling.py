"""Cancelling over REST."""

from uuid import uuid4

import pytest

from libs.pml_local.tests.support.harness import eventually
from pml_common.contracts.executor import CancelRun
from services.gateway.tests.support.harness import World, Worlds

pytestmark = pytest.mark.integration


async def _told(w: World, workflow_id: object) -> list[CancelRun]:
    stream = w.broker.streams["PML_EXECUTOR_CMD"]
    found = [
        CancelRun.model_validate_json(stored.envelope.data)
        for stored in stream.messages
        if ".cancel-run." in stored.envelope.subject
    ]
    return [each for each in found if str(each.workflow_id) == workflow_id]


async def test_a_waiting_workflow_is_cancelled_once_and_names_who_cancelled_it(
    world: Worlds,
) -> None:
    async with world() as w:
        asked = await w.execute("ask")
        path = f"/api/workflows/{asked['workflow_id']}/cancel"
        answer = await w.http.post(path, json={"reason": "a mistake"})
        assert answer.status_code == 200, answer.text
        assert answer.json()["error"]["message"] == (
            "mira cancelled it: a mistake. Nothing of it had run."
        )
        again = await w.http.post(path, json={})
        assert again.status_code == 409
        assert "nothing to cancel" in again.text
        assert w.peers.runs == []


async def test_a_run_is_cancelled_by_its_executor(world: Worlds) -> None:
    async with world() as w:
        asked = await w.execute("ask hang")
        workflow_id = asked["workflow_id"]
        await w.decide(workflow_id, "approve")
        await eventually(lambda: len(w.peers.runs) == 1)
        path = f"/api/workflows/{workflow_id}/cancel"
        for _ in range(2):
            answer = await w.http.post(path, json={"reason": "enough"})
            assert answer.json()["status"] == "running", answer.text
        (told,) = await _told(w, workflow_id)
        assert told.why == "mira cancelled it: enough"
        assert told.run.command_id == w.peers.runs[0].command_id


async def test_only_workflows_of_the_own_scope_can_be_cancelled(world: Worlds) -> None:
    async with world() as w:
        answer = await w.http.post(f"/api/workflows/{uuid4()}/cancel", json={})
        assert answer.status_code == 404
        unknown = await w.http.post(f"/api/workflows/{uuid4()}/cancel", json={"why": "?"})
        assert unknown.status_code == 422
