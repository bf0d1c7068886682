"""Programs that call learned capabilities: analysed, decided, bound and run on the whole stack."""

import json
import os
import signal
from collections.abc import AsyncGenerator, Callable
from typing import Any, cast

import pytest

from libs.pml_local.tests.support.harness import eventually
from tests.e2e.harness import StackHarness

pytestmark = pytest.mark.e2e

Answer = dict[str, Any]
LOOK = "return await mcp.counting.peek({ path: args.path });"
STEP = "return await mcp.counting.step({ n: args.n });"
LOOKING = "const seen = await capabilities.nest_look({ path: 'a' });\nreturn seen.exists;"


async def _submitted(harness: StackHarness, code: str, **more: object) -> Answer:
    answer = await harness.http.post("/api/execute", json={"code": code, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def _known(harness: StackHarness, name: str) -> Answer:
    """Wait until the registry has the capability."""

    async def known() -> Answer | None:
        found = await harness.http.get(f"/api/capabilities/{name}")
        return found.json() if found.status_code == 200 else None

    return await eventually(known)


@pytest.fixture(scope="module")
async def learned(harness: StackHarness) -> dict[str, Answer]:
    """A read-only capability, and one with effects, which was approved once."""
    assert (await _submitted(harness, LOOK, name="nest:look", args={"path": "/"}))["status"] == (
        "success"
    )
    asked = await _submitted(harness, STEP, name="nest:step", args={"n": 4000})
    assert asked["status"] == "approval_required"
    await harness.approve(asked["workflow_id"])
    assert (await harness.end_of(asked["workflow_id"]))["status"] == "success"
    return {name: await _known(harness, name) for name in ("nest:look", "nest:step")}


@pytest.fixture
async def policy(harness: StackHarness) -> AsyncGenerator[Callable[[Answer], None]]:
    """Replace the stack's policy file; the default policy is restored after the test."""

    def write(document: Answer) -> None:
        text = json.dumps(document)
        (harness.stack.home / "policy.json").write_text(text, encoding="utf-8")

    yield write
    write({})


async def _traces(harness: StackHarness, workflow: str, count: int) -> list[Answer]:
    """Wait until this number of a workflow's traces is learned."""

    async def learned() -> list[Answer] | None:
        answer = (await harness.http.get(f"/api/workflows/{workflow}/trace")).json()
        return answer["traces"] if answer["total"] == count else None

    return await eventually(learned)


async def test_ac10_a_nested_capability_is_seen_bound_and_run(
    harness: StackHarness, learned: dict[str, Answer]
) -> None:
    answer = await _submitted(harness, LOOKING)
    assert (answer["status"], answer["result"]) == ("success", False)
    workflow = cast(Answer, await harness.workflow(answer["workflow_id"]))
    (node,) = [one for one in workflow["structure"]["nodes"] if one["type"] == "capability"]
    assert (node["id"], node["name"]) == ("n1", "nest:look")
    assert node["capability_id"] == learned["nest:look"]["capability_id"]
    (bound,) = workflow["analysis"]["capabilities"]
    assert bound["code_hash"] == learned["nest:look"]["code_hash"]
    (tool,) = workflow["decision"]["tools"]
    assert (tool["tool"], tool["verdict"], tool["node_ids"]) == ("counting:peek", "allow", ["n1"])
    assert workflow["executed_path"] == ["n1"]
    assert [(task["node_id"], task["tool"]) for task in workflow["tasks"]] == [
        ("n1/n1", "counting:peek")
    ]


async def test_a_program_of_two_capabilities_asks_runs_and_is_learned_as_a_tree(
    harness: StackHarness, learned: dict[str, Answer]
) -> None:
    code = """const seen = await capabilities.nest_look({ path: "b" });
    const stepped = await mcp.call("cap:nest:step", { n: args.n });
    return [seen.exists, stepped];"""
    asked = await _submitted(harness, code, args={"n": 4343})
    assert asked["status"] == "approval_required"
    (reason,) = asked["approval"]["reasons"]
    assert "through capability nest:step" in reason
    used = (await _known(harness, "nest:look"))["usage"]["count"]
    await harness.approve(asked["workflow_id"])
    ended = cast(Answer, await harness.end_of(asked["workflow_id"]))

    assert ended["status"] == "success", ended
    assert ended["result"] == [False, {"result": "step 4343 done"}]
    assert (ended["executed_path"], harness.steps()[4343]) == (["n1", "n2"], 1)
    root, *nested = await _traces(harness, asked["workflow_id"], 3)
    assert (root["parent_trace_id"], root["task_results"]) == (None, [])
    by_node = {one["node_id"]: one for one in nested}
    for node, name, tool in (
        ("n1", "nest:look", "counting:peek"),
        ("n2", "nest:step", "counting:step"),
    ):
        assert by_node[node]["name"] == name
        assert by_node[node]["parent_trace_id"] == root["trace_id"]
        assert by_node[node]["capability_id"] == learned[name]["capability_id"]
        (task,) = by_node[node]["task_results"]
        assert (task["node_id"], task["tool"]) == ("n1", tool)
    assert by_node["n1"]["executed_at"] <= by_node["n2"]["executed_at"]

    async def counted() -> bool:
        return (await _known(harness, "nest:look"))["usage"]["count"] > used

    await eventually(counted)


async def test_nested_calls_outlive_their_executor_and_are_not_repeated(
    harness: StackHarness, learned: dict[str, Answer]
) -> None:
    code = """const all = [];
    for (const n of [0, 1]) all.push(await capabilities.nest_step({ n: args.base + n }));
    return all;"""
    harness.hold(4501)
    asked = await _submitted(harness, code, args={"base": 4500}, timeout=60)
    await harness.approve(asked["workflow_id"])
    await eventually(lambda: harness.steps()[4501] == 1)
    killed = harness.stack.pid_of("executor")
    os.kill(killed, signal.SIGKILL)
    await eventually(
        lambda: "executor" in harness.stack.parts and harness.stack.pid_of("executor") != killed,
    )
    harness.release(4501)
    ended = cast(Answer, await harness.end_of(asked["workflow_id"]))
    assert ended["status"] == "success", ended
    assert ended["result"] == [{"result": f"step {n} done"} for n in (4500, 4501)]
    assert (harness.steps()[4500], harness.steps()[4501]) == (1, 1)
    assert len(await _traces(harness, asked["workflow_id"], 3)) == 3


async def test_effects_of_a_nested_capability_need_approval(
    harness: StackHarness, learned: dict[str, Answer]
) -> None:
    answer = await _submitted(harness, "return await mcp.call('cap:nest:step', { n: 4242 });")
    assert answer["status"] == "approval_required"
    (reason,) = answer["approval"]["reasons"]
    assert "through capability nest:step on line 1 with n = 4242." in reason
    assert answer["approval"]["calls"][0]["tool"] == "cap:nest:step"
    assert harness.steps()[4242] == 0


async def test_an_unknown_capability_is_rejected_with_a_suggestion(
    harness: StackHarness, learned: dict[str, Answer]
) -> None:
    answer = await _submitted(harness, "return await capabilities.nest_lok({});")
    assert answer["error"]["kind"] == "rejected"
    assert answer["error"]["message"] == (
        'There is no capability "nest_lok". Did you mean nest_look?'
    )


async def test_a_rule_on_a_name_holds_for_callers_and_for_the_capability_itself(
    harness: StackHarness, learned: dict[str, Answer], policy: Callable[[Answer], None]
) -> None:
    policy({"rules": [{"pattern": "cap:nest:*", "verdict": "deny"}]})
    nested = await _submitted(harness, LOOKING)
    assert nested["error"]["kind"] == "denied"
    assert "The rule cap:nest:* says deny." in nested["error"]["message"]
    by_name = await harness.http.post(
        "/api/execute", json={"capability": "nest:look", "args": {"path": "/"}}
    )
    assert by_name.json()["error"]["kind"] == "denied"
    policy({})
    again = await harness.http.post(
        "/api/execute", json={"capability": "nest:look", "args": {"path": "/"}}
    )
    assert again.json()["status"] == "success"
