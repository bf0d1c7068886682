"""The same call again, while its workflow waits for a person or before its result was fetched."""

import asyncio

import pytest

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_gateway.domain.api.api import ExecuteRequest
from pml_gateway.domain.api.task_results import GetTaskResult
from pml_gateway.ports import Caller, CallerSide
from services.gateway.tests.support.builders import SCOPE
from services.gateway.tests.support.harness import Json, World, Worlds

pytestmark = pytest.mark.integration


async def _approved(w: World, asked: Json) -> None:
    """Approve a workflow, and wait for its end without its caller."""
    answer = await w.decide(asked["workflow_id"], "approve", wait=True)
    assert answer.json()["status"] == "success"


async def test_the_same_call_three_times_makes_one_approval_and_one_run(world: Worlds) -> None:
    async with world() as w:
        first = await w.execute("ask", args={"path": "/a"}, intent="look")
        again = await w.execute("ask", args={"path": "/a"}, intent="look at it", timeout=90)
        assert (again["status"], again["joined"]) == ("approval_required", True)
        assert again["workflow_id"] == first["workflow_id"]
        assert "joined" not in first
        await _approved(w, first)
        third = await w.execute("ask", args={"path": "/a"})
        assert (third["status"], third["workflow_id"]) == ("success", first["workflow_id"])
        assert (await w.http.get("/api/workflows")).json()["total"] == 1
        assert len(w.peers.runs) == 1


async def test_a_result_that_was_delivered_is_not_joined_again(world: Worlds) -> None:
    async with world() as w:
        first = await w.execute("ask")
        await _approved(w, first)
        assert (await w.execute("ask"))["workflow_id"] == first["workflow_id"]
        assert (await w.execute("ask"))["workflow_id"] != first["workflow_id"]


async def test_calls_at_the_same_time_join_each_other(world: Worlds) -> None:
    async with world() as w:
        answers = await asyncio.gather(*(w.execute("ask") for _ in range(5)))
        assert len({answer["workflow_id"] for answer in answers}) == 1
        assert sum("joined" in answer for answer in answers) == 4


async def test_who_joins_a_run_waits_for_its_end(world: Worlds) -> None:
    async with world() as w:
        first = await w.execute("ask hang")
        await w.decide(first["workflow_id"], "approve")
        async with asyncio.timeout(PATIENCE_S), asyncio.TaskGroup() as group:
            joining = group.create_task(w.execute("ask hang"))
            await eventually(lambda: w.parts.notifier.is_awaited(SCOPE, first["workflow_id"]))
            w.peers.release.set()
        assert joining.result()["status"] == "success"
        assert joining.result()["workflow_id"] == first["workflow_id"]


@pytest.mark.parametrize(
    "other",
    [
        {"args": {"path": "/b"}},
        {"code": "ask()"},
        {"fresh": True},
        {"idempotency_key": "k"},
        {"name": "fs:look"},
    ],
)
async def test_another_call_joins_nothing(other: Json, world: Worlds) -> None:
    async with world() as w:
        first = await w.execute("ask", args={"path": "/a"})
        call: Json = {"code": "ask", "args": {"path": "/a"}, **other}
        answer = await w.execute(**call)
        assert answer["workflow_id"] != first["workflow_id"]
        assert "joined" not in answer


async def test_what_was_begun_with_a_key_is_not_joined_without_it(world: Worlds) -> None:
    async with world() as w:
        first = await w.execute("ask", idempotency_key="k")
        assert (await w.execute("ask"))["workflow_id"] != first["workflow_id"]
        assert (await w.execute("ask", idempotency_key="k"))["workflow_id"] == first["workflow_id"]


async def test_another_credential_joins_nothing(world: Worlds) -> None:
    async with world() as w:
        first = await w.execute("ask")
        agents, request = w.parts.use_cases.agents, ExecuteRequest(code="ask")
        theirs = await agents.execute(SCOPE, "zoe", request)
        assert str(theirs.workflow_id) != first["workflow_id"]
        ours = await agents.execute(SCOPE, "mira", request)
        assert str(ours.workflow_id) == first["workflow_id"]


async def test_programs_that_need_no_approval_are_never_joined(world: Worlds) -> None:
    async with world() as w:
        first = await w.execute("return 1;")
        assert (await w.execute("return 1;"))["workflow_id"] != first["workflow_id"]


@pytest.mark.parametrize("decision", ["deny", "replan"])
async def test_what_was_refused_is_asked_again(decision: str, world: Worlds) -> None:
    async with world() as w:
        first = await w.execute("ask")
        await w.decide(first["workflow_id"], decision)
        again = await w.execute("ask")
        assert again["status"] == "approval_required"
        assert again["workflow_id"] != first["workflow_id"]


async def test_an_approval_that_has_expired_is_asked_again(world: Worlds) -> None:
    async with world(gateway_approval_ttl_s=0.000001) as w:
        first = await w.execute("ask")
        assert (await w.execute("ask"))["workflow_id"] != first["workflow_id"]


async def test_an_answer_that_reaches_nobody_is_not_delivered(world: Worlds) -> None:
    async def gone() -> bool:
        return True

    async with world() as w:
        first = await w.execute("ask")
        await _approved(w, first)
        agents, request = w.parts.use_cases.agents, ExecuteRequest(code="ask")
        lost = await agents.execute(SCOPE, "mira", request, CallerSide(is_gone=gone))
        assert str(lost.workflow_id) == first["workflow_id"]
        assert (await w.execute("ask"))["workflow_id"] == first["workflow_id"]


@pytest.mark.parametrize("way", ["tool", "view"])
async def test_a_result_that_its_caller_fetched_is_delivered(way: str, world: Worlds) -> None:
    async with world() as w:
        first = await w.execute("ask")
        await _approved(w, first)
        if way == "view":
            await w.workflow(first["workflow_id"])
        else:
            asked = GetTaskResult.model_validate({"workflow_id": first["workflow_id"]})
            await w.parts.use_cases.agents.result(Caller(SCOPE, "zoe"), asked)
            await w.parts.use_cases.agents.result(Caller(SCOPE, "mira"), asked)
        assert (await w.execute("ask"))["workflow_id"] != first["workflow_id"]


async def test_a_result_that_somebody_else_fetched_is_still_the_callers(world: Worlds) -> None:
    async with world() as w:
        first = await w.execute("ask")
        await _approved(w, first)
        asked = GetTaskResult.model_validate({"workflow_id": first["workflow_id"]})
        await w.parts.use_cases.agents.result(Caller(SCOPE, "zoe"), asked)
        assert (await w.execute("ask"))["workflow_id"] == first["workflow_id"]
