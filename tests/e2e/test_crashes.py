"""Killing parts of a running stack loses nothing and repeats nothing."""

import asyncio
import os
import signal
from typing import cast

import httpx2
import pytest

from libs.pml_local.tests.support.harness import eventually
from tests.e2e.harness import Json, World

pytestmark = pytest.mark.e2e

THREE_CALLS = """
const first = await mcp.counting.step({ n: args.base });
const second = await mcp.counting.step({ n: args.base + 1 });
const third = await mcp.counting.step({ n: args.base + 2 });
return [first, second, third];
"""
ONE_CALL = "return await mcp.pml_stub.echo({ n: args.n, twice: args.n });"


def _kill(world: World, part: str) -> int:
    pid = world.stack.pid_of(part)
    os.kill(pid, signal.SIGKILL)
    return pid


async def _restarted(world: World, part: str, old: int) -> None:
    await eventually(
        lambda: part in world.stack.parts and world.stack.pid_of(part) != old, within=30.0
    )


@pytest.mark.parametrize("held", [0, 1, 2])
async def test_a_run_outlives_its_executor_and_repeats_no_call(world: World, held: int) -> None:
    base = 100 + 10 * held
    world.hold(base + held)
    asked = await world.http.post(
        "/api/execute", json={"code": THREE_CALLS, "args": {"base": base}, "timeout": 60}
    )
    workflow = asked.json()["workflowId"]
    assert asked.json()["status"] == "approval_required"
    assert not any(world.steps()[base + n] for n in range(3))
    await world.approve(workflow)
    await eventually(lambda: world.steps()[base + held] == 1, within=30.0)
    killed = _kill(world, "executor")
    await _restarted(world, "executor", killed)
    world.release(base + held)
    ended = await world.end_of(workflow, within=40.0)
    assert ended["status"] == "success", ended
    assert ended["result"] == [{"result": f"step {base + n} done"} for n in range(3)]
    assert [world.steps()[base + n] for n in range(3)] == [1, 1, 1]


@pytest.mark.parametrize("part", ["learner", "registry"])
async def test_what_runs_while_a_part_is_dead_is_learned_once(world: World, part: str) -> None:
    code = ONE_CALL.replace("twice", f"while_{part}_dies")
    first = await world.execute(code, args={"n": 0})
    assert first["status"] == "success", first
    killed = _kill(world, part)
    runs = await asyncio.gather(*(world.execute(code, args={"n": n}) for n in range(1, 6)))
    assert {run["status"] for run in runs} == {"success"}
    assert {run["capabilityId"] for run in runs} == {first["capabilityId"]}
    await _restarted(world, part, killed)

    async def six_traces() -> bool:
        answer = await world.http.get(f"/api/traces/{first['capabilityId']}")
        return answer.status_code == 200 and answer.json()["total"] == 6

    async def six_uses() -> bool:
        answer = await world.http.get(f"/api/capabilities/{first['capabilityId']}")
        return answer.status_code == 200 and answer.json()["usage"]["count"] == 6

    await eventually(six_traces, within=40.0)
    await eventually(six_uses, within=40.0)


async def test_a_run_outlives_the_gateway_that_was_calling_its_tool(world: World) -> None:
    world.hold(200)
    asked = await world.http.post(
        "/api/execute",
        json={
            "code": "return await mcp.counting.step({ n: 200 });",
            "timeout": 60,
            "idempotency_key": "gateway-dies",
        },
    )
    workflow = asked.json()["workflowId"]
    await world.approve(workflow)
    await eventually(lambda: world.steps()[200] == 1, within=30.0)
    killed = _kill(world, "gateway")
    await _restarted(world, "gateway", killed)
    world.release(200)

    async def ended() -> Json | None:
        try:
            found = await world.workflow(workflow)
        except httpx2.TransportError:
            return None
        return found if found["status"] in ("success", "error") else None

    outcome = await eventually(ended, within=30.0)
    # Nobody can say how the call ended: the tool is not repeatable, so it is not made again.
    assert cast(Json, outcome["error"])["kind"] == "outcome_unknown"
    assert world.steps()[200] == 1
