"""Cancelled workflows, and executors that are stopped."""

import os
import signal
from typing import cast

import pytest

from libs.pml_local.tests.support.harness import eventually
from tests.e2e.deciding import decide
from tests.e2e.harness import Json, StackHarness

pytestmark = pytest.mark.e2e

TWO_CALLS = """
const looked = await mcp.counting.peek({ path: "/" });
return [looked, await mcp.counting.step({ n: args.n })];
"""


async def _holding(harness: StackHarness, n: int, **more: object) -> str:
    """A workflow whose run waits inside `step(n)`."""
    harness.hold(n)
    asked = await harness.http.post(
        "/api/execute", json={"code": TWO_CALLS, "args": {"n": n}, "timeout": 60, **more}
    )
    workflow = str(asked.json()["workflow_id"])
    await harness.approve(workflow)
    await eventually(lambda: harness.steps()[n] == 1)
    return workflow


async def test_a_cancelled_run_stops_at_once_and_reports_its_calls_and_unknown_outcomes(
    harness: StackHarness,
) -> None:
    workflow = await _holding(harness, 800)
    path = f"/api/workflows/{workflow}/cancel"
    answer = await harness.http.post(path, json={"reason": "no longer needed", "wait": True})
    assert answer.status_code == 200, answer.text
    error = cast(Json, answer.json()["error"])
    assert error["kind"] == "cancelled"
    assert error["message"] == (
        "local cancelled it: no longer needed. It has called counting:peek. "
        "The outcome of these calls is unknown: counting:step."
    )
    await eventually(lambda: (harness.folder / "cancelled-800").exists())
    again = await harness.http.post(path, json={})
    assert again.status_code == 409, again.text
    assert "nothing to cancel" in again.text


async def test_a_program_that_calls_nothing_is_stopped_too(harness: StackHarness) -> None:
    code = "await mcp.counting.peek({ path: '/' }); while (true) {}"
    endless = {"code": code, "timeout": 1}
    answer = await harness.http.post("/api/execute", json=endless)
    assert answer.json()["error"]["kind"] == "timeout"
    asked = await harness.http.post(
        "/api/execute",
        json={"code": "await mcp.counting.step({ n: 810 }); while (true) {}", "timeout": 60},
    )
    workflow = str(asked.json()["workflow_id"])
    await harness.approve(workflow)
    await eventually(lambda: harness.steps()[810] == 1)
    path = f"/api/workflows/{workflow}/cancel"
    answer = await harness.http.post(path, json={"wait": True})
    assert answer.json()["error"]["kind"] == "cancelled", answer.text


async def test_a_workflow_that_waits_for_approval_is_cancelled_and_never_runs(
    harness: StackHarness,
) -> None:
    asked = await harness.http.post(
        "/api/execute", json={"code": "return await mcp.counting.step({ n: 820 });"}
    )
    workflow = asked.json()["workflow_id"]
    answer = await harness.http.post(f"/api/workflows/{workflow}/cancel", json={})
    assert answer.json()["error"]["message"] == "local cancelled it. Nothing of it had run."
    late = await decide(harness, workflow, decision="approve")
    assert late.status_code == 409, late.text
    assert harness.steps()[820] == 0


async def test_a_stopping_executor_leaves_its_run_to_the_next(harness: StackHarness) -> None:
    workflow = await _holding(harness, 830)
    old = harness.stack.pid_of("executor")
    os.kill(old, signal.SIGTERM)
    await eventually(
        lambda: "executor" in harness.stack.parts and harness.stack.pid_of("executor") != old,
    )
    assert (await harness.workflow(workflow))["status"] == "running"
    harness.release(830)
    ended = await harness.end_of(workflow)
    assert ended["status"] == "success", ended
    assert harness.steps()[830] == 1
