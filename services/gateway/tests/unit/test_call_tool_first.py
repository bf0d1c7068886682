"""Tool calls that cannot have been made before: not looked up where they may be repeated."""

import pytest

from pml_common.contracts.gateway import CallTool, ToolOutcome
from pml_common.contracts.tool import ToolDefinition
from pml_gateway.application.tool_calls import ToolCalls
from pml_gateway.domain.tool_calls.ledger import Entry
from services.gateway.tests.support.builders import AT, READ, WRITE, later, workflow
from services.gateway.tests.support.calling import call, tool_calls
from services.gateway.tests.support.fake_stores import FakeLedger
from services.gateway.tests.support.harness import FakeServers

OK = ToolOutcome(status="ok", result={"path": "/notes.txt"})


class AskedLedger(FakeLedger):
    """Counts its queries."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0

    async def begin(self, call: CallTool, entry: Entry) -> Entry | None:
        self.looks += 1
        return await super().begin(call, entry)

    async def find(self, call: CallTool) -> Entry | None:
        self.looks += 1
        return await super().find(call)


def calls(servers: FakeServers, ledger: FakeLedger) -> ToolCalls:
    """Build the handler of a process that just started."""
    return tool_calls(servers, ledger)


@pytest.mark.parametrize(("tool", "looks"), [(READ, 0), (WRITE, 1)])
async def test_only_what_may_be_made_again_is_made_unseen(tool: ToolDefinition, looks: int) -> None:
    servers, ledger = FakeServers(), AskedLedger()
    first = call(workflow(), tool).model_copy(update={"asked_first_at": AT})
    assert await calls(servers, ledger).on_call_tool(first) == OK
    assert ledger.looks == looks
    again = first.model_copy(update={"asked_first_at": None})
    assert await calls(servers, ledger).on_call_tool(again) == OK
    assert servers.made == [tool.tool_id]


async def test_a_first_question_that_lay_about_is_looked_up() -> None:
    servers, ledger = FakeServers(), AskedLedger()
    asked = call(workflow(), READ)
    assert await calls(servers, ledger).on_call_tool(asked) == OK
    stale = asked.model_copy(update={"asked_first_at": later(-5)})
    assert await calls(servers, ledger).on_call_tool(stale) == OK
    assert servers.made == ["fs:read"]
