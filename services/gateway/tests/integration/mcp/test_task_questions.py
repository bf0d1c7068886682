"""Requests of a tool's server for input, and its errors, while the call is a task (2026-07-28)."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from mcp import MCPError
from mcp_types import INVALID_PARAMS, ElicitResult

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.tool import JsonObject
from pml_gateway.application import task_inputs
from pml_gateway.domain.tool_calls.tool_result import outcome_of
from pml_gateway.entrypoints.mcp import tasks
from pml_gateway.ports import ServerInputs
from services.gateway.tests.integration.mcp.asked_users import Asked, User, asked, asked_as, text
from services.gateway.tests.integration.mcp.task_client import Json, Polling, TaskResult, ask
from services.gateway.tests.support.harness import Worlds

pytestmark = pytest.mark.integration

SCHEMA: JsonObject = {"type": "object", "properties": {}}


def _asks(*names: str) -> ToolOutcome:
    """Build the answer of a server that asks for these forms."""
    form: JsonObject = {"message": "Who?", "requestedSchema": SCHEMA}
    requests: JsonObject = {
        name: {"method": "elicitation/create", "params": form} for name in names
    }
    return outcome_of(
        {"resultType": "input_required", "inputRequests": requests, "requestState": "begun"}
    )


DONE = outcome_of({"content": [{"type": "text", "text": "Hello, Ada"}]})


@pytest.fixture
async def a(monkeypatch: pytest.MonkeyPatch, world: Worlds) -> AsyncGenerator[Asked]:
    monkeypatch.setattr(tasks, "TASK_AFTER_S", 0.0)
    monkeypatch.setattr(task_inputs, "_POLL_EVERY_S", 0.01)
    async with asyncio.timeout(PATIENCE_S), asked(world) as one:
        one.w.servers.release = asyncio.Event()
        yield one


async def _begin(a: Asked, client: Any) -> str:
    """Call a tool whose server answers once the call is a task; return the task's id."""
    created = await client.session.call_tool("fs_read", {"path": "/a"}, allow_claimed=True)
    assert isinstance(created, TaskResult)
    assert a.w.servers.release is not None
    a.w.servers.release.set()
    return created.task_id


async def _until(client: Any, task_id: str, status: str) -> Json:
    async def look() -> Json | None:
        found = await ask(client.session, "tasks/get", task_id)
        return found if found["status"] == status else None

    return await eventually(look)


async def test_a_server_that_asks_later_is_answered_by_the_client_that_polls(a: Asked) -> None:
    async def answer(request: Json) -> ElicitResult:
        assert request["params"]["message"] == "Who?"
        return ElicitResult(action="accept", content={"name": "Ada"})

    a.w.servers.outcomes = [_asks("who", "again"), DONE]
    polling = Polling(answer)
    async with a.client(User([]), extensions=[polling]) as client, asyncio.TaskGroup() as group:
        calling = group.create_task(client.call_tool("fs_read", {"path": "/a"}))
        await eventually(lambda: bool(polling.seen))
        assert a.w.servers.release is not None
        a.w.servers.release.set()
        assert text(await calling) == "Hello, Ada"
    given: JsonObject = {"action": "accept", "content": {"name": "Ada"}, "_meta": None}
    side = a.w.servers.origins[-1].side
    assert side is not None
    assert side.inputs == ServerInputs({"who": given, "again": given}, "begun")
    assert a.w.servers.made == ["fs:read", "fs:read"]


async def test_answers_are_checked_and_taken_one_by_one_from_the_caller(a: Asked) -> None:
    a.w.servers.outcomes = [_asks("who", "why"), DONE]
    async with a.client(User([]), extensions=[Polling()]) as client:
        task_id = await _begin(a, client)
        first, second = (await _until(client, task_id, "input_required"))["inputRequests"]
        for bad in ("yes", {"action": "yes"}):
            with pytest.raises(MCPError, match=first) as refused:
                await ask(client.session, "tasks/update", task_id, {first: bad})
            assert refused.value.error.code == INVALID_PARAMS
        given: Json = {"action": "decline"}
        async with (
            asked_as("eve", a) as eve,
            eve.client(User([]), extensions=[Polling()]) as other,
        ):
            with pytest.raises(MCPError, match="no workflow"):
                await ask(other.session, "tasks/update", task_id, {first: given})
        await ask(client.session, "tasks/update", task_id, {first: given, "input-0": given})
        left = await ask(client.session, "tasks/get", task_id)
        assert [*left["inputRequests"]] == [second]
        await ask(client.session, "tasks/update", task_id, {second: given})
        done = await _until(client, task_id, "completed")
    assert done["result"]["content"] == [{"type": "text", "text": "Hello, Ada"}]


async def test_a_task_that_waits_for_input_can_be_cancelled(a: Asked) -> None:
    a.w.servers.outcomes = [_asks("who")]
    async with a.client(User([]), extensions=[Polling()]) as client:
        task_id = await _begin(a, client)
        await _until(client, task_id, "input_required")
        await ask(client.session, "tasks/cancel", task_id)
        ended = await _until(client, task_id, "cancelled")
        assert "inputRequests" not in ended
    assert a.w.servers.made == ["fs:read"]


async def test_a_call_without_an_answer_in_time_ends_with_the_reason(
    a: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_inputs, "ANSWER_WITHIN_S", 0.0)
    a.w.servers.outcomes = [_asks("who")]
    async with a.client(User([]), extensions=[Polling()]) as client:
        task_id = await _begin(a, client)
        done = await _until(client, task_id, "completed")
    assert done["result"]["isError"] is True
    (block,) = done["result"]["content"]
    assert "the server asks for input (elicitation/create), and has no answer" in block["text"]


async def test_a_server_that_asks_for_ever_is_left(a: Asked) -> None:
    asks_nothing = outcome_of({"resultType": "input_required", "requestState": "begun"})
    a.w.servers.outcomes = [asks_nothing] * 20
    async with a.client(User([]), extensions=[Polling()]) as client:
        task_id = await _begin(a, client)
        done = await _until(client, task_id, "completed")
    assert "more than 10 times" in done["result"]["content"][0]["text"]
    assert len(a.w.servers.made) == 11


async def test_a_tools_error_is_a_result_and_the_protocols_is_a_failure(a: Asked) -> None:
    failed = outcome_of({"content": [{"type": "text", "text": "no"}], "isError": True})
    broke = ToolOutcome(status="tool_error", message="it broke", code=-32603)
    async with a.client(User([]), extensions=[Polling()]) as client:
        a.w.servers.outcomes = [failed]
        done = await _until(client, await _begin(a, client), "completed")
        assert done["result"]["isError"] is True
        a.w.servers.release = asyncio.Event()
        a.w.servers.outcomes = [broke]
        broken = await _until(client, await _begin(a, client), "failed")
    assert broken["error"] == {"code": -32603, "message": "it broke"}
    assert "result" not in broken
