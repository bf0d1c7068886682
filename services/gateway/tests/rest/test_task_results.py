"""Results that are asked for after the answer: waited for, paged, expired; and cancelling."""

import asyncio
from datetime import datetime, timedelta
from uuid import UUID, uuid4

import pytest

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_gateway.domain.api.api import ExecuteResponse
from pml_gateway.domain.api.errors import Conflict, NotFound, ResultUnavailable
from pml_gateway.domain.api.task_results import GetTaskResult
from pml_gateway.ports import Caller
from services.gateway.tests.support.builders import ELSEWHERE, SCOPE
from services.gateway.tests.support.harness import Json, World, Worlds

pytestmark = pytest.mark.integration

MIRA = Caller(SCOPE, "mira")


async def get(w: World, asked: Json, caller: Caller = MIRA, **more: object) -> ExecuteResponse:
    given = {"workflow_id": asked["workflow_id"], **more}
    return await w.parts.use_cases.agents.result(caller, GetTaskResult.model_validate(given))


async def stop(w: World, workflow_id: object, caller: Caller = MIRA) -> ExecuteResponse:
    agents = w.parts.use_cases.agents
    return await agents.stop(caller, UUID(str(workflow_id)), "enough")


async def test_a_result_is_returned_again_and_in_pages(world: Worlds) -> None:
    async with world() as w:
        done = await w.execute("return 1;", args={"path": "/a"})
        again = await get(w, done)
        assert again.result == done["result"]
        page = (await get(w, done, limit=5)).page
        assert page is not None
        assert (page.text, page.next_offset) == ('[{"st', 5)


async def test_a_pending_approval_is_answered_at_once_without_a_wait(world: Worlds) -> None:
    async with world() as w:
        asked = await w.execute("ask")
        answer = await get(w, asked)
        assert answer.status == "approval_required"
        assert answer.next is not None


async def test_who_waits_gets_the_result_once_a_person_has_approved(world: Worlds) -> None:
    async with world() as w:
        asked = await w.execute("ask", args={"path": "/a"})
        async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
            waiting = group.create_task(get(w, asked, wait_s=45))
            await eventually(lambda: w.parts.notifier.is_awaited(SCOPE, asked["workflow_id"]))
            await w.decide(asked["workflow_id"], "approve")
        assert waiting.result().status == "success"
        assert len(w.peers.runs) == 1


async def test_who_waits_hears_of_a_denial(world: Worlds) -> None:
    async with world() as w:
        asked = await w.execute("ask")
        await w.decide(asked["workflow_id"], "deny", reason="no")
        answer = await get(w, asked, wait_s=45)
        assert answer.error is not None
        assert answer.error.message == "approver:noor denied it: no"


async def test_a_wait_is_bounded(world: Worlds) -> None:
    async with world() as w:
        asked = await w.execute("ask hang")
        assert (await get(w, asked, wait_s=0.01)).status == "approval_required"
        await w.decide(asked["workflow_id"], "approve")
        answer = await get(w, asked, wait_s=0.01)
        assert answer.status == "running"
        assert answer.next is not None


async def test_results_of_another_scope_are_unknown(world: Worlds) -> None:
    async with world() as w:
        done = await w.execute("return 1;")
        for caller, asked in (
            (Caller(ELSEWHERE, "mira"), done),
            (MIRA, {"workflow_id": str(uuid4())}),
        ):
            with pytest.raises(ResultUnavailable, match="no workflow") as error:
                await get(w, asked, caller)
            assert error.value.kind == "unknown"
        with pytest.raises(NotFound):
            await stop(w, done["workflow_id"], Caller(ELSEWHERE, "mira"))


async def test_results_of_tasks_expire_and_the_workflows_own_stays(world: Worlds) -> None:
    async with world(gateway_result_ttl_s=0.000001) as w:
        done = await w.execute("return 1;")
        ended_at = datetime.fromisoformat((await w.workflow(done["workflow_id"]))["finished_at"])
        await eventually(lambda: w.parts.bus.now() > ended_at + timedelta(milliseconds=1))
        with pytest.raises(ResultUnavailable, match="omit task_id") as error:
            await get(w, done, task_id="n1.0")
        assert error.value.kind == "expired"
        assert (await get(w, done)).result == done["result"]


async def test_a_waiting_workflow_is_stopped_and_an_ended_one_is_not(world: Worlds) -> None:
    async with world() as w:
        asked = await w.execute("ask")
        answer = await stop(w, asked["workflow_id"])
        assert answer.error is not None
        assert answer.error.kind == "cancelled"
        with pytest.raises(Conflict, match="nothing to cancel"):
            await stop(w, asked["workflow_id"])
