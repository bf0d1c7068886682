"""An idempotency key is its principal's own, over REST and MCP; stored ones are found again."""

from uuid import UUID

import pytest

from libs.pml_local.tests.support.harness import eventually
from pml_common.contracts.scope import Scope
from pml_common.storage.errors import StorageUnavailable
from pml_gateway.domain.api.api import ExecuteRequest
from pml_gateway.domain.workflow.deletion import deleted
from pml_gateway.domain.workflow.events import Analyzed
from pml_gateway.domain.workflow.workflow import Workflow
from pml_gateway.ports import Caller
from services.gateway.tests.support.builders import AT, SCOPE, analyzed, finished, later, workflow
from services.gateway.tests.support.harness import Json, World, Worlds
from services.gateway.tests.support.steps import after

pytestmark = pytest.mark.integration

ASKED: Json = {"code": "return 1;", "idempotency_key": "k"}


async def over_mcp(w: World, principal: str) -> Json:
    """Call `pml_execute` as a principal, with the same request and key as others."""
    answer = await w.tools.call(Caller(SCOPE, principal), "pml_execute", ASKED)
    assert answer.structured_content is not None, answer
    return answer.structured_content


async def stored_before(w: World, *, is_deleted: bool = False) -> Workflow:
    """Store a workflow of mira's that has ended, as the former release did under its key."""
    new = workflow(ExecuteRequest.model_validate(ASKED), key="k", principal="mira", is_former=True)
    running, _ = after(new, Analyzed(analyzed(new), AT))
    over, _ = after(running, finished(running, result="of before"))
    await w.kept.accept(over, ())
    if is_deleted:
        assert await w.kept.change(SCOPE, new.workflow_id, lambda it: deleted(it, later(9)))
    return over


async def is_stored(w: World, answer: Json) -> bool:
    page = await w.kept.page(SCOPE, 10, 0)
    ended = {str(each.workflow_id) for each in page.workflows if each.status == "success"}
    return answer["workflow_id"] in ended


async def test_two_principals_with_one_request_and_key_have_their_own_workflows(
    world: Worlds,
) -> None:
    async with world() as w, world(gateway_principal="ana") as other:
        first = await w.execute(**ASKED)
        await eventually(lambda: is_stored(w, first))
        second = await other.execute(**ASKED)
        assert second["status"] == "success"
        assert second["workflow_id"] != first["workflow_id"]
        await eventually(lambda: is_stored(other, second))
        assert [await w.execute(**ASKED), await other.execute(**ASKED)] == [first, second]
        assert (len(w.peers.runs), len(other.peers.runs)) == (1, 1)


async def test_so_have_two_clients_over_mcp(world: Worlds) -> None:
    async with world() as w:
        of_mira, of_ana = await over_mcp(w, "mira"), await over_mcp(w, "ana")
        assert of_mira["status"] == of_ana["status"] == "success"
        assert of_mira["workflowId"] != of_ana["workflowId"]
        assert [await over_mcp(w, "mira"), await over_mcp(w, "ana")] == [of_mira, of_ana]
        assert (await w.execute(**ASKED))["workflow_id"] == of_mira["workflowId"]
        assert len(w.peers.runs) == 2


async def test_a_key_whose_workflow_is_known_needs_no_store(
    world: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world() as w:
        first = await w.execute(**ASKED)
        await eventually(lambda: is_stored(w, first))
        present, get = UUID(first["workflow_id"]), w.parts.workflows.store.get

        async def away_but_for_what_is_known(scope: Scope, workflow_id: UUID) -> Workflow | None:
            if workflow_id == present:
                return await get(scope, workflow_id)
            raise StorageUnavailable("Postgres is away")

        monkeypatch.setattr(w.parts.workflows.store, "get", away_but_for_what_is_known)
        assert await w.execute(**ASKED) == first
        other = await w.http.post("/api/execute", json={**ASKED, "idempotency_key": "another"})
        assert other.status_code == 503, "the former release may have it"


async def test_a_workflow_that_the_former_release_stored_is_found_under_its_key(
    world: Worlds,
) -> None:
    async with world() as w:
        before = await stored_before(w)
        again = await w.execute(**ASKED)
        assert (again["workflow_id"], again["result"]) == (str(before.workflow_id), "of before")
        assert w.peers.runs == []
        other = {**ASKED, "code": "return 2;"}
        assert (await w.http.post("/api/execute", json=other)).status_code == 409
        of_ana = await over_mcp(w, "ana")
        assert of_ana["workflowId"] != again["workflow_id"]
        assert len(w.peers.runs) == 1
        await eventually(lambda: is_stored(w, {"workflow_id": of_ana["workflowId"]}))
        assert (await w.execute(**ASKED))["workflow_id"] == again["workflow_id"]


async def test_a_key_whose_data_is_deleted_stays_used_by_its_principal_alone(
    world: Worlds,
) -> None:
    async with world() as w:
        await stored_before(w, is_deleted=True)
        assert (await w.http.post("/api/execute", json=ASKED)).status_code == 410
        of_ana = await over_mcp(w, "ana")
        assert of_ana["status"] == "success"
        ana = Caller(SCOPE, "ana")
        await w.parts.use_cases.deletions.delete(ana, UUID(of_ana["workflowId"]))
        refused = await w.tools.call(ana, "pml_execute", ASKED)
        assert refused.is_error
        assert "was deleted" in str(refused.content)
        assert len(w.peers.runs) == 1
        assert (await over_mcp(w, "ben"))["status"] == "success"


async def test_a_guess_under_anothers_key_is_made_anew(w: World) -> None:
    done = await w.execute(**ASKED)
    intent: Json = {"intent": "look", "context": {"path": "/a"}, "idempotency_key": "k"}
    mine = await w.http.post("/api/execute", json=intent)
    assert mine.status_code == 409, mine.text
    answer = await w.tools.call(Caller(SCOPE, "ana"), "pml_execute", intent)
    assert answer.structured_content is not None
    assert answer.structured_content["speculation"]["outcome"] != "ran"
    assert answer.structured_content.get("workflowId") != done["workflow_id"]
