"""Parked runs, on the whole stack."""

from collections.abc import Sequence
from typing import cast

import pytest

from tests.e2e.deciding import decide, restart_everything, waiting
from tests.e2e.harness import Json, StackHarness

pytestmark = pytest.mark.e2e

BY_NAME = """
const before = await mcp.counting.peek({ path: args.path });
const began = Date.now();
const said = [];
for (const n of args.ns) said.push(await mcp.call(args.tool, { n }));
return { said, existed: before.exists, forward: Date.now() >= began };
"""


async def _parked(harness: StackHarness, ns: Sequence[int], tool: str = "counting:step") -> Json:
    """A workflow that was approved and parks at its dynamic call."""
    args = {"path": str(harness.folder), "tool": tool, "ns": list(ns)}
    answer = await harness.http.post(
        "/api/execute", json={"code": BY_NAME, "args": args, "timeout": 60}
    )
    asked = answer.json()
    assert asked["status"] == "approval_required", asked
    assert (await decide(harness, asked["workflow_id"], decision="approve")).status_code == 200
    return await waiting(harness, str(asked["workflow_id"]), asked["approval"]["id"])


@pytest.mark.parametrize("restarts", [1, pytest.param(2, marks=pytest.mark.nightly)])
async def test_a_parked_run_resumes_after_a_restart_of_everything_and_repeats_nothing(
    harness: StackHarness, restarts: int
) -> None:
    n = 690 + 10 * restarts
    parked = await _parked(harness, [n, n + 1])
    workflow, first = str(parked["workflow_id"]), cast(Json, parked["approval"])
    assert parked["status"] == "approval_required"
    assert first["tools"] == ["counting:step"]
    (call,) = cast(list[Json], first["calls"])
    assert [one["text"] for one in cast(list[Json], call["arguments"])] == [str(n)]
    assert call["line"] == 5
    assert "counting:peek" in cast(list[str], first["reasons"])[0]
    assert harness.steps()[n] == 0
    await restart_everything(harness)

    unnamed = await decide(harness, workflow, decision="approve")
    assert unnamed.status_code == 409, unnamed.text
    named = await decide(harness, workflow, decision="approve", approval_id=first["approval_id"])
    assert named.status_code == 200, named.text
    second = cast(Json, (await waiting(harness, workflow, first["approval_id"]))["approval"])
    stale = await decide(harness, workflow, decision="approve", approval_id=first["approval_id"])
    assert stale.status_code == 409, stale.text
    assert (harness.steps()[n], harness.steps()[n + 1]) == (1, 0)

    if restarts > 1:
        await restart_everything(harness)
    named = await decide(harness, workflow, decision="approve", approval_id=second["approval_id"])
    assert named.status_code == 200, named.text
    ended = await harness.end_of(workflow)
    assert ended["status"] == "success", ended
    result = cast(Json, ended["result"])
    assert result["said"] == [{"result": f"step {n} done"}, {"result": f"step {n + 1} done"}]
    assert result["forward"] is True
    assert (harness.steps()[n], harness.steps()[n + 1]) == (1, 1)
    twice = await decide(harness, workflow, decision="approve", approval_id=second["approval_id"])
    assert twice.status_code == 409, twice.text


async def test_a_refused_parked_run_ends_and_reports_its_calls(harness: StackHarness) -> None:
    parked = await _parked(harness, [720])
    workflow, approval = str(parked["workflow_id"]), cast(Json, parked["approval"])
    body = {"decision": "replan", "approval_id": approval["approval_id"], "reason": "not 720"}
    answer = await decide(harness, workflow, **body)
    error = answer.json()["error"]
    assert error["kind"] == "denied"
    assert "wants another plan instead of its call of counting:step: not 720" in error["message"]
    assert "It has called counting:peek." in error["message"]
    assert answer.json()["calls"]["by_tool"] == {"counting:peek": 1}
    assert harness.steps()[720] == 0
