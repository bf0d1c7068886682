"""Requests over the limits get 429 with the time to retry; known ones never do."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager

import httpx2
import pytest

from libs.pml_local.tests.support.harness import eventually
from pml_common.bus import names
from pml_common.contracts import catalog
from pml_gateway.application.workflow_service import WorkflowService
from pml_gateway.entrypoints.mcp.meta_tools import PML_EXECUTE
from pml_gateway.ports import Caller
from services.gateway.tests.support.builders import SCOPE
from services.gateway.tests.support.harness import Json, World, Worlds

pytestmark = pytest.mark.integration

IN_FLIGHT, WAITING = 2, 3


def small(world: Worlds, waiting: int = WAITING) -> AbstractAsyncContextManager[World]:
    return world(gateway_max_in_flight=IN_FLIGHT, gateway_max_waiting_per_scope=waiting)


@pytest.fixture
async def w(world: Worlds) -> AsyncGenerator[World]:
    async with small(world) as one:
        yield one


async def ask(w: World, code: str = "hang", **more: object) -> httpx2.Response:
    return await w.http.post("/api/execute", json={"code": code, **more})


def asked(w: World, times: int, **more: object) -> list[asyncio.Task[httpx2.Response]]:
    keys = [f"k{number}" for number in range(times)]
    return [asyncio.create_task(ask(w, "hang", idempotency_key=key, **more)) for key in keys]


async def full(w: World, **more: object) -> list[asyncio.Task[httpx2.Response]]:
    """Fill the gateway: as many requests in flight and queued as the limits allow."""
    others = len(w.peers.runs)
    tasks = asked(w, IN_FLIGHT, **more)
    await eventually(lambda: len(w.peers.runs) == others + IN_FLIGHT)
    tasks += [asyncio.create_task(ask(w, "hang", **more)) for _ in range(WAITING)]
    await eventually(lambda: w.parts.admission.waiting == WAITING)
    return tasks


async def test_exactly_the_surplus_is_refused_and_all_accepted_end(w: World) -> None:
    surplus = 4
    tasks = asked(w, IN_FLIGHT + WAITING + surplus)
    await eventually(lambda: sum(task.done() for task in tasks) == surplus)
    await eventually(lambda: len(w.peers.runs) == IN_FLIGHT)
    w.peers.release.set()
    answers = [await task for task in tasks]
    refused = [answer for answer in answers if answer.status_code == 429]
    assert len(refused) == surplus
    for answer in refused:
        assert int(answer.headers["retry-after"]) >= 1
        error = answer.json()["error"]
        assert error["kind"] == "busy"
        assert f"{WAITING} executions of {SCOPE} wait to begin ({WAITING} may)" in error["message"]
        assert f"try again in {answer.headers['retry-after']} s" in error["message"]
    ended = [answer.json() for answer in answers if answer.status_code == 200]
    assert [each["status"] for each in ended] == ["success"] * (IN_FLIGHT + WAITING)
    assert len(w.peers.runs) == IN_FLIGHT + WAITING


async def test_a_refused_request_was_not_accepted_and_runs_when_sent_again(w: World) -> None:
    tasks = await full(w)
    assert (await ask(w, "return 1;", idempotency_key="late")).status_code == 429
    assert (await w.http.get("/api/workflows")).json()["total"] == IN_FLIGHT
    w.peers.release.set()
    await asyncio.gather(*tasks)
    answer = await ask(w, "return 1;", idempotency_key="late")
    assert answer.json()["status"] == "success"


async def test_a_known_key_is_answered_however_many_wait(w: World) -> None:
    ended = await w.execute("return 1;", idempotency_key="ended")
    tasks = await full(w)
    assert await w.execute("return 1;", idempotency_key="ended") == ended
    answer = await ask(w, "return 2;", idempotency_key="ended")
    assert answer.status_code == 409
    again = asyncio.create_task(ask(w, idempotency_key="k0"))
    w.peers.release.set()
    first = (await tasks[0]).json()
    assert (await again).json() == first


async def test_a_workflow_that_waits_for_approval_does_not_count(w: World) -> None:
    for _ in range(IN_FLIGHT + WAITING + 1):
        assert (await w.execute("ask")).get("status") == "approval_required"
    assert (await w.execute("return 1;"))["status"] == "success"


async def test_dry_runs_count(w: World) -> None:
    tasks = await full(w, dry_run=True)
    assert (await ask(w, dry_run=True)).status_code == 429
    w.peers.release.set()
    await asyncio.gather(*tasks)


async def test_a_workflow_whose_caller_no_longer_waits_counts_until_it_ends(world: Worlds) -> None:
    async with small(world, waiting=0) as w:
        answers = await asyncio.gather(*asked(w, IN_FLIGHT, timeout=0.2))  # waits: until they run
        assert {answer.json()["status"] for answer in answers} == {"running"}
        assert (await ask(w)).status_code == 429
        w.peers.release.set()

        async def room() -> Json | None:
            await w.parts.admission.release_ended()
            answer = await ask(w, "return 1;")
            return answer.json() if answer.status_code == 200 else None

        assert (await eventually(room))["status"] == "success"


async def test_over_mcp_a_refusal_is_a_result_that_says_when_to_try_again(w: World) -> None:
    tasks = await full(w)
    calls = w.tools
    for tool, args in ((PML_EXECUTE.name, {"code": "hang"}), ("fs:write", {"path": "/a"})):
        result = await calls.call(Caller(SCOPE, "mira"), tool, dict(args))
        assert result.is_error
        (content,) = result.content
        assert "try again in" in content.model_dump()["text"]
    w.peers.release.set()
    await asyncio.gather(*tasks)


async def test_a_queued_request_is_accepted_and_continues_when_the_gateway_stops(w: World) -> None:
    tasks = await full(w)
    w.parts.notifier.close()
    w.parts.admission.close()
    answers = [(await task).json() for task in tasks]
    assert {answer["status"] for answer in answers} == {"running"}
    w.peers.release.set()

    async def ended() -> bool:
        stands = [await w.workflow(answer["workflow_id"]) for answer in answers]
        return all(each["status"] == "success" for each in stands)

    await eventually(ended)


async def test_openapi_describes_the_refusal(w: World) -> None:
    described = (await w.http.get("/openapi.json")).json()
    refusal = described["paths"]["/api/execute"]["post"]["responses"]["429"]
    assert refusal["headers"]["Retry-After"]["schema"] == {"type": "integer", "minimum": 1}
    assert refusal["content"]["application/json"]["schema"]["$ref"].endswith("/ErrorResponse")


async def test_a_key_whose_acceptance_is_forgotten_stands_for_its_first_request(
    monkeypatch: pytest.MonkeyPatch, world: Worlds
) -> None:
    """A gateway looked the key up before it was accepted, and the server has lost its ids since."""

    async def unknown(*_: object) -> None:
        return None

    async with world() as w:
        first = await w.execute("return 1;", idempotency_key="k")
        with monkeypatch.context() as late:
            late.setattr(WorkflowService, "known", unknown)
            w.broker.streams[names.events_stream(catalog.WORKFLOW_ACCEPTED)].by_id.clear()
            answer = await ask(w, "return 2;", idempotency_key="k")
        assert answer.status_code == 409
        assert await w.execute("return 1;", idempotency_key="k") == first
