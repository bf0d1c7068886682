"""Approvals by the user of an agent's client, on the whole stack: execute, form, result."""

import asyncio

import pytest
from mcp import Client
from mcp.client import ClientRequestContext
from mcp_types import ElicitRequestFormParams, ElicitRequestParams, ElicitResult

from libs.pml_local.tests.support.patience import PATIENCE_S
from tests.e2e.agents import Mode, answer_of, step
from tests.e2e.harness import StackHarness

pytestmark = pytest.mark.e2e

SETTING = "/api/approvals/elicitation"


async def _set(harness: StackHarness, *, may_elicit: bool) -> None:
    body = {"may_elicit": may_elicit}
    answer = await harness.http.post(SETTING, json=body, headers=harness.approver)
    assert answer.status_code == 200, answer.text


async def test_a_user_approves_a_program_and_the_calls_at_which_it_parks(
    harness: StackHarness, mode: Mode
) -> None:
    n = 3970 if mode == "auto" else 3975
    forms: list[str] = []

    async def approve(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        assert isinstance(params, ElicitRequestFormParams)
        forms.append(params.message)
        return ElicitResult(action="accept", content={"decision": "approve"})

    async with asyncio.timeout(2 * PATIENCE_S):
        await _set(harness, may_elicit=True)
        url = f"{harness.stack.url}/mcp"
        async with Client(url, mode=mode, elicitation_callback=approve) as client:
            done = answer_of(await client.call_tool("pml_execute", {"code": step(n)}))
            assert (done["status"], done["result"]) == ("success", {"result": f"step {n} done"})
            tool = await client.call_tool("counting_step", {"n": n + 1})
            assert not tool.is_error, tool
            parks = "return await mcp.call(args.tool, { n: args.n });"
            call = {"code": parks, "args": {"tool": "counting:step", "n": n + 2}}
            parked = answer_of(await client.call_tool("pml_execute", call))
            assert (parked["status"], parked["result"]) == (
                "success",
                {"result": f"step {n + 2} done"},
            )
            await _set(harness, may_elicit=False)
            asked = answer_of(await client.call_tool("pml_execute", {"code": step(n + 3)}))
            assert asked["status"] == "approval_required"
    assert f"n = {n}" in forms[0]
    assert f"n = {n + 1}" in forms[1]
    assert "known when it runs: you are asked then" in forms[2]
    assert "the agent's run stopped" in forms[3]
    assert f"n = {n + 2}" in forms[3]
    assert len(forms) == 4
    assert [harness.steps()[n + each] for each in range(4)] == [1, 1, 1, 0]
    path = f"/api/workflows/{parked['workflowId']}/approval"
    approval = (await harness.http.get(path)).json()
    assert approval["decided_by"] == "local"
    assert approval["decided_through"]["way"] == "elicitation"
