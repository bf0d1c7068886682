"""Dry runs: read-only tools are called, the others are mocked."""

from typing import Any

import pytest

from libs.pml_local.tests.support.harness import eventually
from tests.e2e.harness import StackHarness

pytestmark = pytest.mark.e2e

Answer = dict[str, Any]
PROGRAM = """const seen = await mcp.counting.peek({ path: "/" });
const first = await mcp.counting.step({ n: args.n });
const second = await mcp.counting.step({ n: args.n });
return [seen.exists, first, second];"""


async def _asked(harness: StackHarness, **more: object) -> Answer:
    answer = await harness.http.post("/api/execute", json={"code": PROGRAM, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def _trace(harness: StackHarness, workflow_id: str) -> Answer:
    """Wait until the learner has stored the workflow's trace."""

    async def stored() -> Answer | None:
        answer = await harness.http.get(f"/api/workflows/{workflow_id}/trace")
        traces = answer.json()["traces"]
        return traces[0] if traces else None

    return await eventually(stored)


async def test_a_dry_run_calls_read_only_tools_mocks_others_and_learns_nothing(
    harness: StackHarness,
) -> None:
    mocks = {"counting:step": ["one", "two"]}
    dry = await _asked(
        harness,
        args={"n": 7001},
        name="dry:steps",
        dry_run=True,
        dry_run_mocks=mocks,
        detail="tasks",
    )
    assert (dry["status"], dry["dry_run"]) == ("success", True)
    assert dry["result"] == [True, "one", "two"]
    assert [(task["tool"], task["mocked"]) for task in dry["tasks"]] == [
        ("counting:peek", False),
        ("counting:step", True),
        ("counting:step", True),
    ]
    assert harness.steps()[7001] == 0
    trace = await _trace(harness, dry["workflow_id"])
    assert trace["dry_run"]
    assert [task["mocked"] for task in trace["task_results"]] == [False, True, True]
    found = await harness.http.get("/api/capabilities/dry:steps")
    assert found.status_code == 404

    wet = await harness.execute(PROGRAM, args={"n": 7001}, name="dry:steps")
    assert wet["status"] == "success"
    assert harness.steps()[7001] == 2

    async def learned() -> bool:
        found = await harness.http.get("/api/capabilities/dry:steps")
        return found.status_code == 200 and found.json()["usage"]["count"] == 1

    assert await eventually(learned)
    known = await harness.http.post(
        "/api/execute",
        json={"capability": "dry:steps", "args": {"n": 7002}, "dry_run": True},
    )
    mock = {"success": True, "mocked": True}
    assert known.json()["result"] == [True, mock, mock]
    assert (await _trace(harness, known.json()["workflow_id"]))["dry_run"]
    again = await harness.http.get("/api/capabilities/dry:steps")
    assert again.json()["usage"]["count"] == 1
    assert harness.steps()[7002] == 0


async def test_the_key_of_a_dry_run_is_not_that_of_a_real_run(harness: StackHarness) -> None:
    key = {"idempotency_key": "dry-or-not", "args": {"n": 7003}}
    dry = await _asked(harness, **key, dry_run=True)
    assert dry["status"] == "success"
    assert (await _asked(harness, **key, dry_run=True))["workflow_id"] == dry["workflow_id"]
    wet = await harness.http.post("/api/execute", json={"code": PROGRAM, **key})
    assert wet.status_code == 409


async def test_mocks_answer_inside_capabilities_and_dynamic_calls(
    harness: StackHarness,
) -> None:
    one = "return (await mcp.counting.step({ n: args.n })) ?? 'no step';"
    assert (await harness.execute(one, args={"n": 7010}, name="dry:one"))["status"] == "success"

    async def known() -> bool:
        return (await harness.http.get("/api/capabilities/dry:one")).status_code == 200

    assert await eventually(known)
    code = """const nested = await capabilities.dry_one({ n: 7011 });
const told = await mcp.call("counting:" + args.which, { n: 7011 });
return [nested, told];"""
    mocks = {"counting:step": ["one", "two"]}
    body = {"code": code, "args": {"which": "step"}, "dry_run": True, "dry_run_mocks": mocks}
    answer = (await harness.http.post("/api/execute", json=body)).json()
    assert (answer["status"], answer.get("result")) == ("success", ["one", "two"]), answer
    assert harness.steps()[7011] == 0
