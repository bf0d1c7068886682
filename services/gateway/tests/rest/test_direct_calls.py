"""Direct calls of tools: workflows with a ledger entry and a trace, made by the gateway itself."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from uuid import UUID

import pytest

from libs.pml_local.tests.support.harness import eventually
from pml_common.contracts.decision import Policy, PolicyRule
from pml_common.contracts.direct_call import CallEnded
from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.tool import JsonObject
from pml_common.storage.errors import StorageUnavailable
from pml_gateway.domain.api.api import ExecuteResponse
from pml_gateway.domain.api.errors import Unavailable
from pml_gateway.domain.tool_calls.repeatable import NotSent
from pml_gateway.domain.tool_calls.tool_result import Answered
from pml_gateway.domain.workflow.direct_call import workflow_of_call
from pml_gateway.domain.workflow.workflow import Workflow
from pml_gateway.entrypoints.bus.on_call_ended import on_call_ended, on_calls_ended
from pml_gateway.entrypoints.timers.on_due import on_due
from pml_gateway.ports import HERE, Caller, CallerSide
from services.gateway.tests.support.builders import SCOPE, later
from services.gateway.tests.support.harness import Json, World, Worlds

pytestmark = pytest.mark.integration

Answer = ToolOutcome | ExecuteResponse
ARGS: JsonObject = {"path": "a.txt"}
ALLOWED = Policy(rules=(PolicyRule(pattern="fs:*", verdict="allow"),))


@asynccontextmanager
async def _world(world: Worlds, *, hangs: bool = False) -> AsyncGenerator[World]:
    """A gateway whose policy allows every tool of `fs`, which may hang."""
    async with world(gateway_policy=ALLOWED) as w:
        w.servers.release = asyncio.Event() if hangs else None
        yield w


def _call(
    w: World, tool: str, side: CallerSide = HERE, timeout_s: float = 60.0
) -> asyncio.Task[Answer]:
    called = w.parts.use_cases.agents.call_tool(SCOPE, "mira", tool, ARGS, timeout_s, side)
    return asyncio.create_task(called)


def _ended(w: World) -> list[CallEnded]:
    messages = w.broker.streams["PML_GATEWAY_EVT"].messages
    found = [each.envelope for each in messages if ".call-ended." in each.envelope.subject]
    return [CallEnded.model_validate_json(each.data) for each in found]


async def _workflows(w: World) -> list[Json]:
    return (await w.http.get("/api/workflows")).json()["workflows"]


async def _only(w: World) -> Json:
    (listed,) = await _workflows(w)
    return await w.workflow(listed["workflow_id"])


async def _stored(w: World) -> Workflow:
    """Return the only workflow in the database."""
    (listed,) = (await w.kept.page(SCOPE, 2, 0)).workflows
    found = await w.kept.get(SCOPE, listed.workflow_id)
    assert found is not None
    return found


def _release(w: World) -> None:
    assert w.servers.release is not None
    w.servers.release.set()


@pytest.mark.parametrize("tool", ["fs:read", "fs:write"])
async def test_a_direct_call_is_a_workflow_with_a_ledger_entry_and_a_trace(
    tool: str, world: Worlds
) -> None:
    async with _world(world) as w:
        answer = await _call(w, tool)
        assert answer == ToolOutcome(status="ok", result=ARGS)
        found = await _only(w)
        assert (found["status"], found["result"], found["args"]) == ("success", ARGS, ARGS)
        assert found["code"] == f'return await mcp.call("{tool}", args);'
        assert found["capability_id"] is None
        (task,) = found["tasks"]
        assert (task["id"], task["tool"], task["success"]) == ("n1.0", tool, True)
        assert w.servers.made == [tool]
        (ended,) = await eventually(lambda: _ended(w))
        key = ended.run.task_results[0].trace_id
        ledger = w.parts.stores.ledger
        assert await eventually(lambda: ledger.results(SCOPE, [key])) == {key: ARGS}
        assert w.servers.origins[0].key == key
        workflow_id = UUID(str(found["workflow_id"]))

        async def stored() -> Workflow | None:
            known = await w.kept.get(SCOPE, workflow_id)
            return known if known and known.state == "succeeded" else None

        # A redelivery changes nothing.
        before = await eventually(stored)
        await on_calls_ended([ended], workflows=w.parts.workflows, calls=w.parts.calls)
        assert await stored() == before
        events = (await w.http.get(f"/api/workflows/{workflow_id}/events")).text
        assert [line for line in events.splitlines() if line.startswith("event: ")] == [
            "event: gateway.execution-requested",
            "event: gateway.call-ended",
            "event: gateway.workflow-finished",
        ]


async def test_a_call_that_may_not_be_repeated_is_stored_before_it_is_made(world: Worlds) -> None:
    async with _world(world, hangs=True) as w:
        call = _call(w, "fs:write")
        await eventually(lambda: w.servers.made)
        stored = await _stored(w)
        assert (stored.state, stored.requested.direct_tool) == ("running", "fs:write")
        _release(w)
        await call


async def test_the_answer_keeps_what_the_server_sent_and_the_trace_its_value(world: Worlds) -> None:
    said: JsonObject = {"content": [{"type": "text", "text": "milk"}], "isError": False}
    async with _world(world) as w:
        w.servers.outcomes.append(Answered(status="ok", result="milk", answer=said))
        answer = await _call(w, "fs:read")
        assert isinstance(answer, Answered)
        assert answer.answer == said
        assert (await _only(w))["result"] == "milk"


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [
        (ToolOutcome(status="tool_error", message="no such file"), "tool_error"),
        (ToolOutcome(status="timeout"), "timeout"),
        (ToolOutcome(status="unknown", message="lost"), "outcome_unknown"),
    ],
)
async def test_a_call_that_fails_ends_its_workflow_as_failed(
    outcome: ToolOutcome, kind: str, world: Worlds
) -> None:
    async with _world(world) as w:
        w.servers.outcomes.append(outcome)
        assert await _call(w, "fs:write") == outcome
        error = (await _only(w))["error"]
        assert (error["kind"], error["tool"]) == (kind, "fs:write")


async def test_a_long_call_is_answered_running_and_its_result_is_fetched(world: Worlds) -> None:
    async with _world(world, hangs=True) as w:
        told: list[tuple[int, int, str]] = []

        async def report(done: int, total: int, message: str) -> None:
            told.append((done, total, message))

        until = asyncio.get_running_loop().time() + 0.1
        answer = await _call(w, "fs:read", CallerSide(answer_by=until, report=report))
        assert isinstance(answer, ExecuteResponse)
        assert (answer.status, told) == ("running", [(0, 1, "0 of 1 calls ended: fs:read")])
        assert answer.next is not None
        path = f"/api/workflows/{answer.workflow_id}"
        assert (await w.http.get(path)).json()["status"] == "running"
        _release(w)

        async def succeeded() -> bool:
            return (await w.http.get(path)).json()["status"] == "success"

        await eventually(succeeded)


async def test_a_cancelled_workflow_stops_its_call(world: Worlds) -> None:
    async with _world(world, hangs=True) as w:
        call = _call(w, "fs:write")
        await eventually(lambda: w.servers.made)
        workflow_id = (await _stored(w)).workflow_id
        answer = await w.http.post(f"/api/workflows/{workflow_id}/cancel", json={})
        error = answer.json()["error"]
        assert (error["kind"], error["tool"]) == ("cancelled", "fs:write")
        assert error["message"] == (
            "mira cancelled it. Its call of fs:write was cancelled, and may have taken effect."
        )
        outcome = await call
        assert isinstance(outcome, ToolOutcome)
        assert outcome.status == "unknown"
        await eventually(lambda: _ended(w))
        assert (await w.workflow(workflow_id))["error"]["kind"] == "cancelled"


@pytest.mark.parametrize(("withdrawn", "status"), [(True, "error"), (False, "running")])
async def test_a_withdrawn_call_stops_and_a_lost_one_goes_on(
    world: Worlds, withdrawn: bool, status: str
) -> None:
    async with _world(world, hangs=True) as w:
        call = _call(w, "fs:write", CallerSide(withdrawn=lambda: withdrawn))
        await eventually(lambda: w.servers.made)
        call.cancel()
        with suppress(asyncio.CancelledError):
            await call
        await w.parts.withdrawals.close()
        assert (await _only(w))["status"] == status


async def test_a_gateway_that_stops_ends_its_calls_as_unknown(world: Worlds) -> None:
    async with _world(world, hangs=True) as w:
        call = _call(w, "fs:write")
        await eventually(lambda: w.servers.made)
        await w.parts.direct.close()
        with suppress(asyncio.CancelledError):
            await call

        async def failed() -> bool:
            return (await _only(w))["status"] == "error"

        await eventually(failed)
        assert (await _only(w))["error"]["kind"] == "outcome_unknown"


async def test_a_call_of_a_gateway_that_died_is_unknown_once_it_is_due(world: Worlds) -> None:
    async with _world(world, hangs=True) as w:
        call = _call(w, "fs:write")
        await eventually(lambda: w.servers.made)
        running = await _stored(w)
        assert running.due_at is not None
        for at, status in ((later(0), "running"), (running.due_at, "error")):
            await on_due(SCOPE, w.parts.workflows, w.kept, w.parts.tools, now=lambda at=at: at)
            assert (await _only(w))["status"] == status
        assert (await _only(w))["error"]["kind"] == "outcome_unknown"
        _release(w)
        await call
        assert (await _only(w))["status"] == "error"


async def test_nothing_is_called_that_could_not_be_stored(
    monkeypatch: pytest.MonkeyPatch, world: Worlds
) -> None:
    async with _world(world) as w:

        async def fails(*_: object) -> None:
            raise StorageUnavailable("Postgres is away")

        monkeypatch.setattr(w.parts.stores.ledger, "begin", fails)
        answer = await _call(w, "fs:write")
        assert isinstance(answer, NotSent)
        monkeypatch.setattr(w.kept, "accept", fails)
        with pytest.raises(Unavailable):
            await _call(w, "fs:write")
        assert w.servers.made == []


async def test_an_end_is_published_once_nats_is_back(
    monkeypatch: pytest.MonkeyPatch, world: Worlds
) -> None:
    monkeypatch.setattr("pml_gateway.application.direct_calls._PUBLISH_AGAIN_S", 0.01)
    async with _world(world, hangs=True) as w:
        call = _call(w, "fs:read")
        await eventually(lambda: w.servers.made)
        w.broker.available = False
        _release(w)
        assert await call == ToolOutcome(status="ok", result=ARGS)
        w.broker.available = True
        await eventually(lambda: _ended(w))


async def test_a_call_is_refused_whose_tool_has_gone_meanwhile(world: Worlds) -> None:
    async with _world(world) as w:
        tool = w.parts.tools.find("fs:write")
        assert tool is not None
        w.servers.listed = {"fs": ()}
        caller = Caller(SCOPE, "mira")
        answer = await w.parts.direct.call(caller, tool, ARGS, 60.0, HERE, ALLOWED)
        assert isinstance(answer, ToolOutcome)
        assert answer.status == "refused"
        assert (await _only(w))["error"]["kind"] == "denied"
        assert w.servers.made == []


async def test_another_gateway_hears_the_end(world: Worlds) -> None:
    async with _world(world, hangs=True) as w:
        call = _call(w, "fs:write")
        await eventually(lambda: w.servers.made)
        _release(w)
        await call
        (ended,) = await eventually(lambda: _ended(w))
        async with world() as other:
            await other.kept.accept(workflow_of_call(ended), ())
            with other.parts.workflows.subscribe(SCOPE, ended.workflow_id) as waiter:
                await on_call_ended(ended, workflows=other.parts.workflows)
                told = await waiter.wait(1.0)
            assert told is not None
            assert told.state == "succeeded"
