"""Tool calls whose run ends while they are made."""

import asyncio

import pytest

from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.contracts.gateway import CallTool, ToolOutcome
from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.tool_calls.ledger import Entry
from pml_gateway.ports import CallOrigin
from services.gateway.tests.support.builders import (
    ELSEWHERE,
    WRITE,
    finished,
    workflow,
)
from services.gateway.tests.support.calling import call, tool_calls
from services.gateway.tests.support.fake_stores import FakeLedger
from services.gateway.tests.support.harness import FakeServers

OURS = workflow(key="ours")


class Hanging(FakeServers):
    """Tools that do not answer; `cancelled` is set when a call is cancelled."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.cancelled = asyncio.Event(), asyncio.Event()

    async def call(
        self, tool_id: str, args: JsonObject, timeout_s: float, origin: CallOrigin
    ) -> ToolOutcome:
        self.made.append(tool_id)
        self.begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        raise AssertionError("nobody answers here")


async def test_a_call_is_cancelled_with_its_run_and_kept_as_unknown() -> None:
    servers, ledger = Hanging(), FakeLedger()
    calls = tool_calls(servers, ledger)
    asked = call(OURS, WRITE)
    answer = asyncio.create_task(calls.on_call_tool(asked))
    async with asyncio.timeout(PATIENCE_S):
        await servers.begun.wait()
        calls.under_way.cancel_of(finished(workflow(key="theirs", scope=ELSEWHERE)))
        assert not servers.cancelled.is_set()
        calls.under_way.cancel_of(finished(OURS))
        outcome = await answer
        assert servers.cancelled.is_set()
        assert outcome.status == "unknown"
        assert "the run ended while fs:write was being called" in (outcome.message or "")
        assert await calls.on_call_tool(asked) == outcome
    assert servers.made == ["fs:write"]


class SlowLedger(FakeLedger):
    """A ledger that answers once `answers` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.answers = asyncio.Event(), asyncio.Event()

    async def begin(self, call: CallTool, entry: Entry) -> Entry | None:
        self.asked.set()
        await self.answers.wait()
        return await super().begin(call, entry)


async def test_a_call_is_not_made_if_its_run_ends_while_the_ledger_is_asked() -> None:
    servers, ledger = FakeServers(), SlowLedger()
    calls = tool_calls(servers, ledger)
    asked = call(OURS, WRITE)
    answer = asyncio.create_task(calls.on_call_tool(asked))
    async with asyncio.timeout(PATIENCE_S):
        await ledger.asked.wait()
        assert calls.under_way.has_of(OURS.scope, str(OURS.workflow_id))
        calls.under_way.cancel_of(finished(OURS))
        ledger.answers.set()
        outcome = await answer
    assert (outcome.status, servers.made) == ("refused", [])
    assert not calls.under_way.has_of(OURS.scope, str(OURS.workflow_id))
    assert await calls.on_call_tool(asked) == outcome


async def test_a_call_that_a_stopping_gateway_gives_up_is_kept_as_begun() -> None:
    servers, ledger = Hanging(), FakeLedger()
    calls = tool_calls(servers, ledger)
    asked = call(OURS, WRITE)
    answer = asyncio.create_task(calls.on_call_tool(asked))
    async with asyncio.timeout(PATIENCE_S):
        await servers.begun.wait()
        await calls.close()
        await servers.cancelled.wait()
        with pytest.raises(asyncio.CancelledError):
            await answer
    known = await ledger.find(asked)
    assert known is not None
    assert known.outcome is None
