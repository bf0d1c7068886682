"""Killing parts of a running stack loses nothing and repeats nothing."""

import asyncio
import os
import signal
from typing import cast

import httpx2
import pytest

from libs.pml_local.tests.support.harness import eventually
from tests.e2e.harness import Json, StackHarness

pytestmark = pytest.mark.e2e

THREE_CALLS = """
const first = await mcp.counting.step({ n: args.base });
const second = await mcp.counting.step({ n: args.base + 1 });
const third = await mcp.counting.step({ n: args.base + 2 });
return [first, second, third];
"""
ONE_CALL = "return await mcp.pml_stub.echo({ n: args.n, twice: args.n });"


def _kill(harness: StackHarness, part: str) -> int:
    pid = harness.stack.pid_of(part)
    os.kill(pid, signal.SIGKILL)
    return pid


async def _restarted(harness: StackHarness, part: str, old: int) -> None:
    await eventually(lambda: part in harness.stack.parts and harness.stack.pid_of(part) != old)


@pytest.mark.parametrize(
    "held", [pytest.param(n, marks=[] if n == 1 else pytest.mark.nightly) for n in range(3)]
)
async def test_a_run_outlives_its_executor_and_repeats_no_call(
    harness: StackHarness, held: int
) -> None:
    base = 100 + 10 * held
    harness.hold(base + held)
    asked = await harness.http.post(
        "/api/execute", json={"code": THREE_CALLS, "args": {"base": base}, "timeout": 60}
    )
    workflow = asked.json()["workflow_id"]
    assert asked.json()["status"] == "approval_required"
    assert not any(harness.steps()[base + n] for n in range(3))
    await harness.approve(workflow)
    await eventually(lambda: harness.steps()[base + held] == 1)
    killed = _kill(harness, "executor")
    await _restarted(harness, "executor", killed)
    harness.release(base + held)
    ended = await harness.end_of(workflow)
    assert ended["status"] == "success", ended
    assert ended["result"] == [{"result": f"step {base + n} done"} for n in range(3)]
    assert [harness.steps()[base + n] for n in range(3)] == [1, 1, 1]


@pytest.mark.parametrize("part", ["learner", pytest.param("registry", marks=pytest.mark.nightly)])
async def test_what_runs_while_a_part_is_dead_is_learned_once(
    harness: StackHarness, part: str
) -> None:
    code = ONE_CALL.replace("twice", f"while_{part}_dies")
    first = await harness.execute(code, args={"n": 0})
    assert first["status"] == "success", first
    killed = _kill(harness, part)
    runs = await asyncio.gather(*(harness.execute(code, args={"n": n}) for n in range(1, 6)))
    assert {run["status"] for run in runs} == {"success"}
    assert {run["capability_id"] for run in runs} == {first["capability_id"]}
    await _restarted(harness, part, killed)

    async def six_traces() -> bool:
        answer = await harness.http.get(f"/api/traces/{first['capability_id']}")
        return answer.status_code == 200 and answer.json()["total"] == 6

    async def six_uses() -> bool:
        answer = await harness.http.get(f"/api/capabilities/{first['capability_id']}")
        return answer.status_code == 200 and answer.json()["usage"]["count"] == 6

    await eventually(six_traces)
    await eventually(six_uses)


async def test_a_run_outlives_the_gateway_that_was_calling_its_tool(harness: StackHarness) -> None:
    harness.hold(200)
    asked = await harness.http.post(
        "/api/execute",
        json={
            "code": "return await mcp.counting.step({ n: 200 });",
            "timeout": 60,
            "idempotency_key": "gateway-dies",
        },
    )
    workflow = asked.json()["workflow_id"]
    await harness.approve(workflow)
    await eventually(lambda: harness.steps()[200] == 1)
    killed = _kill(harness, "gateway")
    await _restarted(harness, "gateway", killed)
    harness.release(200)

    async def ended() -> Json | None:
        try:
            found = await harness.workflow(workflow)
        except httpx2.TransportError:
            return None
        return found if found["status"] in ("success", "error") else None

    outcome = await eventually(ended)
    # The call's outcome is unknown and the tool is not repeatable, so it is not called again.
    assert cast(Json, outcome["error"])["kind"] == "outcome_unknown"
    assert harness.steps()[200] == 1
