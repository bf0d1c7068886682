"""Deletion of a workflow's data over REST."""

from uuid import UUID, uuid4

import pytest

from pml_common.contracts.gateway import WorkflowDataDeleted
from pml_gateway.application.delete_data import Deletions
from pml_gateway.domain.api.errors import NotFound, ResultUnavailable
from pml_gateway.domain.api.task_results import GetTaskResult
from pml_gateway.ports import Caller
from services.gateway.tests.support.builders import AT, ELSEWHERE, SCOPE
from services.gateway.tests.support.harness import World, Worlds

pytestmark = pytest.mark.integration

SECRET = "a word that must go"


def _told(w: World) -> list[WorkflowDataDeleted]:
    stream = w.broker.streams["PML_GATEWAY_EVT"]
    return [
        WorkflowDataDeleted.model_validate_json(stored.envelope.data)
        for stored in stream.messages
        if ".workflow-data-deleted." in stored.envelope.subject
    ]


async def test_the_data_of_a_workflow_is_deleted_once_and_everywhere(world: Worlds) -> None:
    async with world() as w:
        key = {"idempotency_key": "k", "intent": SECRET}
        done = await w.execute("return 1;", **key)
        path = f"/api/workflows/{done['workflow_id']}"
        for _ in range(2):
            answer = await w.http.delete(path)
            assert (answer.status_code, answer.content) == (204, b""), answer.text
        (told,) = _told(w)
        assert (str(told.workflow_id), told.deleted_by) == (done["workflow_id"], "mira")
        for gone in ("", "/dag", "/approval", "/events"):
            answer = await w.http.get(path + gone)
            assert answer.status_code == 410, answer.text
            error = answer.json()["error"]
            assert error["kind"] == "gone"
            assert f"the data of workflow {done['workflow_id']} was deleted" in error["message"]
        runs = len(w.peers.runs)
        for code in ("return 1;", "return 2;"):
            again = await w.http.post("/api/execute", json={"code": code, **key})
            assert again.status_code == 410, again.text
        assert len(w.peers.runs) == runs
        listing = await w.http.get("/api/workflows")
        (listed,) = listing.json()["workflows"]
        assert (listed["status"], listed["deleted_at"] is None) == ("success", False)
        assert SECRET not in listing.text
        assert (await w.http.post(f"{path}/cancel", json={})).status_code == 409
        asked = GetTaskResult(workflow_id=done["workflow_id"])
        with pytest.raises(ResultUnavailable, match="was deleted") as refused:
            await w.parts.use_cases.agents.result(Caller(SCOPE, "mira"), asked)
        assert refused.value.kind == "expired"


async def test_what_has_not_ended_is_cancelled_first(world: Worlds) -> None:
    async with world() as w:
        asked = await w.execute("ask")
        path = f"/api/workflows/{asked['workflow_id']}"
        early = await w.http.delete(path)
        assert (early.status_code, early.json()["error"]["kind"]) == (409, "conflict")
        assert "cancel it first" in early.text
        assert (await w.http.post(f"{path}/cancel", json={})).status_code == 200
        assert (await w.http.delete(path)).status_code == 204
        assert (await w.http.get(f"{path}/approval")).status_code == 410


async def test_only_the_own_caller_can_delete(world: Worlds) -> None:
    async with world() as w:
        done = await w.execute("return 1;")
        deletions = Deletions(w.parts.workflows, lambda: AT)
        for other in (Caller(SCOPE, "noor"), Caller(ELSEWHERE, "mira")):
            with pytest.raises(NotFound, match="no workflow"):
                await deletions.delete(other, UUID(done["workflow_id"]))
        assert (await w.http.delete(f"/api/workflows/{uuid4()}")).status_code == 404
        assert (await w.workflow(done["workflow_id"]))["deleted_at"] is None
        assert _told(w) == []
