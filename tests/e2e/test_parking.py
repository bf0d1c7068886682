"""Runs that wait for a person in their midst, through the whole stack."""

import os
import signal
from collections.abc import Sequence
from typing import cast

import httpx2
import pytest

from pml_common.contracts.catalog import SERVICES
from pml_local.testing import eventually
from tests.e2e.world import Json, World

pytestmark = pytest.mark.e2e

BY_NAME = """
const before = await mcp.counting.peek({ path: args.path });
const began = Date.now();
const said = [];
for (const n of args.ns) said.push(await mcp.call(args.tool, { n }));
return { said, existed: before.exists, forward: Date.now() >= began };
"""


async def _decide(world: World, workflow: str, **body: object) -> httpx2.Response:
    return await world.http.post(f"/api/workflows/{workflow}/approval", json=body)


async def _parked(world: World, ns: Sequence[int], tool: str = "counting:step") -> Json:
    """A workflow that was let run and waits at its call of a tool by name."""
    args = {"path": str(world.folder), "tool": tool, "ns": list(ns)}
    answer = await world.http.post(
        "/api/execute", json={"code": BY_NAME, "args": args, "timeout": 20}
    )
    asked = answer.json()
    assert asked["status"] == "approval_required", asked
    assert (await _decide(world, asked["workflowId"], decision="approve")).status_code == 200
    return await _waiting(world, str(asked["workflowId"]), asked["approval"]["id"])


async def _waiting(world: World, workflow: str, before: object) -> Json:
    """The workflow once it waits for another approval than the one `before`."""

    async def waits() -> Json | None:
        try:
            found = await world.workflow(workflow)
        except httpx2.TransportError:
            return None
        assert found["error"] is None, found
        approval = cast(Json, found["approval"])
        return found if approval["approval_id"] != before and not approval["outcome"] else None

    return await eventually(waits, within=30.0)


async def _restart_everything(world: World) -> None:
    pids = {part: world.stack.pid_of(part) for part in SERVICES}
    for pid in pids.values():
        os.kill(pid, signal.SIGKILL)
    await eventually(
        lambda: all(
            part in world.stack.parts and world.stack.pid_of(part) != pids[part]
            for part in SERVICES
        ),
        within=60.0,
    )

    async def healthy() -> bool:
        try:
            return (await world.http.get("/healthz")).status_code == 200
        except httpx2.TransportError:
            return False

    await eventually(healthy, within=30.0)


async def test_a_run_that_waits_goes_on_after_a_restart_of_everything_and_repeats_nothing(
    world: World,
) -> None:
    parked = await _parked(world, [700, 701])
    workflow, first = str(parked["workflow_id"]), cast(Json, parked["approval"])
    assert parked["status"] == "approval_required"
    assert first["tools"] == ["counting:step"]
    (call,) = cast(list[Json], first["calls"])
    assert call["arguments"] == {"n": {"type": "literal", "value": 700}}
    assert call["line"] == 5
    assert "counting:peek" in cast(list[str], first["reasons"])[0]
    assert world.steps()[700] == 0
    await _restart_everything(world)

    unnamed = await _decide(world, workflow, decision="approve")
    assert unnamed.status_code == 409, unnamed.text
    named = await _decide(world, workflow, decision="approve", approval_id=first["approval_id"])
    assert named.status_code == 200, named.text
    second = cast(Json, (await _waiting(world, workflow, first["approval_id"]))["approval"])
    stale = await _decide(world, workflow, decision="approve", approval_id=first["approval_id"])
    assert stale.status_code == 409, stale.text
    assert (world.steps()[700], world.steps()[701]) == (1, 0)

    await _restart_everything(world)
    named = await _decide(world, workflow, decision="approve", approval_id=second["approval_id"])
    assert named.status_code == 200, named.text
    ended = await world.end_of(workflow)
    assert ended["status"] == "success", ended
    result = cast(Json, ended["result"])
    assert result["said"] == [{"result": "step 700 done"}, {"result": "step 701 done"}]
    assert result["forward"] is True
    assert [world.steps()[n] for n in (700, 701)] == [1, 1]
    twice = await _decide(world, workflow, decision="approve", approval_id=second["approval_id"])
    assert twice.status_code == 409, twice.text


async def test_a_run_that_nobody_lets_go_on_ends_and_says_what_it_has_done(world: World) -> None:
    parked = await _parked(world, [710])
    workflow, approval = str(parked["workflow_id"]), cast(Json, parked["approval"])
    body = {"decision": "replan", "approval_id": approval["approval_id"], "reason": "not 710"}
    answer = await _decide(world, workflow, **body)
    error = answer.json()["error"]
    assert error["kind"] == "denied"
    assert "wants another plan instead of its call of counting:step: not 710" in error["message"]
    assert "It has called counting:peek." in error["message"]
    assert [task["tool"] for task in answer.json()["tasks"]] == ["counting:peek"]
    assert world.steps()[710] == 0
