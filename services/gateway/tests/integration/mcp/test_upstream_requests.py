"""Requests of upstream servers, during a call, to the client that caused it."""

import asyncio
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.contracts.tool import JsonObject
from pml_gateway.adapters.mcp_client.server_pool import ServerPool
from pml_gateway.domain.tool_calls.tool_result import Answered
from pml_gateway.ports import (
    Caller,
    CallerSide,
    CallOrigin,
    ClientRefused,
    ServerInputs,
)
from services.gateway.tests.integration.mcp.harness import ServerHarness, connected
from services.gateway.tests.support.builders import SCOPE
from tests.conformance.suite import conformance_server

pytestmark = pytest.mark.integration

ABLE: JsonObject = {"elicitation": {"form": {}}, "sampling": {}, "roots": {}}
ANSWERS: dict[str, JsonObject] = {
    "elicitation/create": {"action": "accept", "content": {"name": "Ada"}},
    "sampling/createMessage": {
        "role": "assistant",
        "content": {"type": "text", "text": "Hi"},
        "model": "small",
    },
    "roots/list": {"roots": [{"uri": "file:///home"}]},
}


@dataclass
class StubClient:
    """A client with a session; what it is asked is recorded."""

    capabilities: JsonObject = field(default_factory=lambda: dict(ABLE))
    takes_requests: bool = True
    answers: dict[str, JsonObject] = field(default_factory=lambda: dict(ANSWERS))
    asked: list[str] = field(default_factory=list[str])

    async def request(self, method: str, params: JsonObject, timeout_s: float) -> JsonObject:
        self.asked.append(method)
        if method not in self.answers:
            raise ClientRefused(-1, "the user is away")
        return self.answers[method]


def _origin(side: CallerSide | None) -> CallOrigin:
    return CallOrigin(Caller(SCOPE, "mira"), UUID(int=1), side)


async def _call(pool: ServerPool, tool: str, side: CallerSide | None) -> Answered:
    outcome = await pool.call(tool, {}, PATIENCE_S, _origin(side))
    return (
        outcome
        if isinstance(outcome, Answered)
        else Answered(status=outcome.status, message=outcome.message, answer={})
    )


async def test_a_server_with_a_handshake_reaches_the_client_of_the_only_call(
    harness: ServerHarness,
) -> None:
    client = StubClient()
    side = CallerSide(client=client)
    async with connected({"box": harness.stdio("--legacy")}) as pool:
        asked = await _call(pool, "box:ask", side)
        assert asked.result == "accept {'name': 'Ada'} small"
        assert client.asked == ["elicitation/create", "sampling/createMessage"]

        for refused in (None, CallerSide(), CallerSide(client=StubClient(capabilities={}))):
            outcome = await _call(pool, "box:ask", refused)
            assert outcome.status == "tool_error"
            assert "which the caller cannot give here" in str(outcome.message)
        away = await _call(pool, "box:ask", CallerSide(client=StubClient(answers={})))
        assert "elicitation/create: the user is away" in str(away.message)

        slow = asyncio.create_task(pool.call("box:slow", {"seconds": 30}, PATIENCE_S))
        await eventually(harness.lines)
        doubtful = await _call(pool, "box:ask", side)
        assert "which the caller cannot give here" in str(doubtful.message)
        slow.cancel()


async def test_a_modern_server_is_answered_by_the_client_while_the_call_waits() -> None:
    client = StubClient()
    side = CallerSide(client=client)
    async with connected({"test": conformance_server("test")}) as pool:
        every = await _call(pool, "test:input_required_result_multiple_inputs", side)
        assert all(said in str(every.result) for said in ("Ada", "Hi", "file:///home"))
        rounds = await _call(pool, "test:input_required_result_multi_round", side)
        assert "both rounds" in str(rounds.result)
        sampling = CallerSide(client=StubClient(capabilities={"sampling": {}}))
        able = await _call(pool, "test:input_required_result_capabilities", sampling)
        assert "sample_input" in str(able.result)
        assert "elicit_input" not in str(able.result)
        bad = StubClient(answers={"elicitation/create": {"action": "maybe"}})
        odd = await _call(pool, "test:input_required_result_elicitation", CallerSide(client=bad))
        assert "the client's answer to elicitation/create is none" in str(odd.message)
        unable = await _call(pool, "test:input_required_result_elicitation", None)
        assert "which the caller cannot give here" in str(unable.message)


async def test_a_modern_client_is_answered_with_what_the_server_asks_for() -> None:
    client = StubClient(takes_requests=False)
    async with connected({"test": conformance_server("test")}) as pool:
        side = CallerSide(client=client, inputs=ServerInputs())
        asked = await _call(pool, "test:input_required_result_request_state", side)
        assert asked.answer["resultType"] == "input_required"
        assert asked.message == "the server asks for input: confirm"
        state: Any = asked.answer["requestState"]
        given = ServerInputs({"confirm": ANSWERS["elicitation/create"]}, state)
        done = await _call(
            pool,
            "test:input_required_result_request_state",
            CallerSide(client=client, inputs=given),
        )
        assert "state-ok" in str(done.result)
        assert client.asked == []
        unable = CallerSide(client=StubClient(capabilities={}), inputs=ServerInputs())
        lacking = await _call(pool, "test:missing_capability", unable)
        assert lacking.answer["error"] == {
            "code": -32021,
            "message": "sampling is required",
            "data": {"requiredCapabilities": {"sampling": {}}},
        }
