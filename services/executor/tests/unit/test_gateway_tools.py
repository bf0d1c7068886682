"""Repeated queries until the gateway answers."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from libs.pml_local.tests.support.harness import eventually
from pml_common.bus.errors import QueryErrorCode, QueryFailed
from pml_common.contracts.catalog import CALL_TOOL
from pml_common.contracts.gateway import CallTool, ToolOutcome
from pml_common.contracts.scope import Scope
from pml_common.health import Detail
from pml_common.outages import Outage
from pml_common.testing.memory_bus import MemoryBus
from pml_executor.adapters import gateway_tools
from pml_executor.adapters.gateway_tools import GatewayTools
from pml_executor.ports import GatewayUnreachable
from services.executor.tests.support.builders import make_command


@pytest.fixture
def query(monkeypatch: pytest.MonkeyPatch) -> CallTool:
    monkeypatch.setattr(gateway_tools, "_RETRY_DELAYS_S", (0.0,))
    monkeypatch.setattr(gateway_tools, "_REPLY_MARGIN_S", 0.0)
    command = make_command("")
    return CallTool(
        scope=command.scope,
        workflow_id=command.workflow_id,
        node_id="n1",
        occurrence=0,
        tool="fs:read",
        args={},
        grant_digest=command.grant.digest(),
        timeout_s=50.0,
        asked_first_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


async def test_an_absent_gateway_is_asked_again_under_the_same_key(query: CallTool) -> None:
    bus = MemoryBus()
    asked: list[CallTool] = []

    async def answer(question: CallTool) -> ToolOutcome:
        asked.append(question)
        if len(asked) < 3:
            raise QueryFailed("unavailable", "its outcome is not kept yet")
        return ToolOutcome(status="ok", result=1)

    await bus.serve(CALL_TOOL, answer)
    assert await GatewayTools(bus).call(query) == ToolOutcome(status="ok", result=1)
    assert {question.idempotency_key for question in asked} == {query.idempotency_key}
    assert [question.asked_first_at for question in asked] == [query.asked_first_at, None, None]


async def test_a_gateway_that_died_with_the_query_is_not_waited_for(
    query: CallTool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway_tools, "_REQUEST_TIMEOUT_S", 0.05)
    bus = MemoryBus()
    asked: list[CallTool] = []

    async def answer(question: CallTool) -> ToolOutcome:
        asked.append(question)
        if len(asked) == 1:
            await asyncio.Event().wait()
        return ToolOutcome(status="ok", result=2)

    await bus.serve(CALL_TOOL, answer)
    assert await GatewayTools(bus).call(query) == ToolOutcome(status="ok", result=2)
    await bus.drain(0.01)


async def test_the_time_of_an_outage_does_not_count_as_the_calls(
    query: CallTool, monkeypatch: pytest.MonkeyPatch
) -> None:
    bus, passed = MemoryBus(), 0.0
    monkeypatch.setattr(gateway_tools, "monotonic", lambda: passed)

    async def answer(_: CallTool) -> ToolOutcome:
        return ToolOutcome(status="ok", result=3)

    def outages() -> Sequence[Outage]:
        """Report an outage of a minute after the first request."""
        nonlocal passed
        asked_before, bus.broker.available = not bus.broker.available, passed > 0
        passed += 30.0 if asked_before else 0.0
        return (Outage(0.0, passed),)

    await bus.serve(CALL_TOOL, answer)
    assert await GatewayTools(bus, outages).call(query) == ToolOutcome(status="ok", result=3)
    assert passed == 60.0


async def test_a_call_waits_for_a_gateway_of_its_scope_which_health_names(query: CallTool) -> None:
    bus, elsewhere, asked = MemoryBus(), Scope(org="rival", project="webapp"), list[CallTool]()
    here, there = f"{query.scope}", f"{elsewhere}"

    async def answer(question: CallTool) -> ToolOutcome:
        asked.append(question)
        return ToolOutcome(status="ok", result=4)

    await bus.serve(CALL_TOOL, answer, scopes=[elsewhere])
    tools = GatewayTools(bus)
    assert await tools.check() is None
    first, second = (query.model_copy(update={"occurrence": each}) for each in range(2))
    waiting = [asyncio.create_task(tools.call(each)) for each in (first, second)]
    await eventually(tools.check)
    said = await tools.check()
    assert isinstance(said, Detail)
    assert (here in said, there in said) == (True, False)
    assert asked == []
    await bus.serve(CALL_TOOL, answer, scopes=[query.scope])
    assert [each.result for each in await asyncio.gather(*waiting)] == [4, 4]
    assert {each.idempotency_key for each in asked} == {
        each.idempotency_key for each in (first, second)
    }
    assert await tools.check() is None


async def test_a_gateway_that_never_answers_leaves_the_call_in_doubt(query: CallTool) -> None:
    with pytest.raises(GatewayUnreachable, match="not known whether fs:read was called"):
        await GatewayTools(MemoryBus()).call(query.model_copy(update={"timeout_s": 0.2}))


@pytest.mark.parametrize(
    ("code", "status"),
    [("not_found", "tool_error"), ("invalid", "tool_error"), ("internal", "unknown")],
)
async def test_a_refused_query_has_an_outcome_too(
    query: CallTool, code: QueryErrorCode, status: str
) -> None:
    bus = MemoryBus()

    async def answer(_: CallTool) -> ToolOutcome:
        raise QueryFailed(code, "no such server: fs")

    await bus.serve(CALL_TOOL, answer)
    outcome = await GatewayTools(bus).call(query)
    assert (outcome.status, outcome.message) == (status, "no such server: fs")
