"""Programs that call what was learned: seen, decided, bound and run through the whole stack."""

import json
import os
import signal
from collections.abc import AsyncGenerator, Callable
from typing import Any, cast

import pytest

from libs.pml_local.tests.support.harness import eventually
from tests.e2e.harness import World

pytestmark = pytest.mark.e2e

Answer = dict[str, Any]
LOOK = "return await mcp.counting.peek({ path: args.path });"
STEP = "return await mcp.counting.step({ n: args.n });"
LOOKING = "const seen = await capabilities.nest_look({ path: 'a' });\nreturn seen.exists;"


async def _submitted(world: World, code: str, **more: object) -> Answer:
    answer = await world.http.post("/api/execute", json={"code": code, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def _known(world: World, name: str) -> Answer:
    """A capability once the registry knows it."""

    async def known() -> Answer | None:
        found = await world.http.get(f"/api/capabilities/{name}")
        return found.json() if found.status_code == 200 else None

    return await eventually(known, within=30.0)


@pytest.fixture(scope="module")
async def learned(world: World) -> dict[str, Answer]:
    """One that reads, and one that changes something and was never approved."""
    assert (await _submitted(world, LOOK, name="nest:look", args={"path": "/"}))["status"] == (
        "success"
    )
    assert (await _submitted(world, STEP, name="nest:step"))["status"] == "approval_required"
    return {name: await _known(world, name) for name in ("nest:look", "nest:step")}


@pytest.fixture
async def policy(world: World) -> AsyncGenerator[Callable[[Answer], None]]:
    """Writes the stack's policy file; the default policy holds again in the end."""

    def write(document: Answer) -> None:
        text = json.dumps(document)
        (world.stack.home / "policy.json").write_text(text, encoding="utf-8")

    yield write
    write({})


async def _traces(world: World, workflow: str, count: int) -> list[Answer]:
    """The traces of a workflow once so many are learned."""

    async def learned() -> list[Answer] | None:
        answer = (await world.http.get(f"/api/workflows/{workflow}/trace")).json()
        return answer["traces"] if answer["total"] == count else None

    return await eventually(learned, within=30.0)


async def test_a_nested_capability_is_seen_bound_and_run(
    world: World, learned: dict[str, Answer]
) -> None:
    answer = await _submitted(world, LOOKING)
    assert (answer["status"], answer["result"]) == ("success", False)
    workflow = cast(Answer, await world.workflow(answer["workflowId"]))
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
    world: World, learned: dict[str, Answer]
) -> None:
    code = """const seen = await capabilities.nest_look({ path: "b" });
    const stepped = await mcp.call("cap:nest:step", { n: args.n });
    return [seen.exists, stepped];"""
    asked = await _submitted(world, code, args={"n": 4343})
    assert asked["status"] == "approval_required"
    (reason,) = asked["approval"]["reasons"]
    assert "through capability nest:step" in reason
    used = (await _known(world, "nest:look"))["usage"]["count"]
    await world.approve(asked["workflowId"])
    ended = cast(Answer, await world.end_of(asked["workflowId"]))

    assert ended["status"] == "success", ended
    assert ended["result"] == [False, {"result": "step 4343 done"}]
    assert (ended["executed_path"], world.steps()[4343]) == (["n1", "n2"], 1)
    root, *nested = await _traces(world, asked["workflowId"], 3)
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
        return (await _known(world, "nest:look"))["usage"]["count"] == used + 1

    await eventually(counted, within=30.0)


async def test_nested_calls_outlive_their_executor_and_are_not_repeated(
    world: World, learned: dict[str, Answer]
) -> None:
    code = """const all = [];
    for (const n of [0, 1]) all.push(await capabilities.nest_step({ n: args.base + n }));
    return all;"""
    world.hold(4501)
    asked = await _submitted(world, code, args={"base": 4500}, timeout=60)
    await world.approve(asked["workflowId"])
    await eventually(lambda: world.steps()[4501] == 1, within=30.0)
    killed = world.stack.pid_of("executor")
    os.kill(killed, signal.SIGKILL)
    await eventually(
        lambda: "executor" in world.stack.parts and world.stack.pid_of("executor") != killed,
        within=30.0,
    )
    world.release(4501)
    ended = cast(Answer, await world.end_of(asked["workflowId"], within=40.0))
    assert ended["status"] == "success", ended
    assert ended["result"] == [{"result": f"step {n} done"} for n in (4500, 4501)]
    assert (world.steps()[4500], world.steps()[4501]) == (1, 1)
    assert len(await _traces(world, asked["workflowId"], 3)) == 3


async def test_what_a_nested_capability_changes_is_asked_for(
    world: World, learned: dict[str, Answer]
) -> None:
    answer = await _submitted(world, "return await mcp.call('cap:nest:step', { n: 4242 });")
    assert answer["status"] == "approval_required"
    (reason,) = answer["approval"]["reasons"]
    assert "through capability nest:step on line 1 with n = 4242." in reason
    assert answer["approval"]["calls"][0]["tool"] == "cap:nest:step"
    assert world.steps()[4242] == 0


async def test_an_unknown_capability_is_rejected_with_what_may_have_been_meant(
    world: World, learned: dict[str, Answer]
) -> None:
    answer = await _submitted(world, "return await capabilities.nest_lok({});")
    assert answer["error"]["kind"] == "rejected"
    assert answer["error"]["message"] == (
        'There is no capability "nest_lok". Did you mean nest_look?'
    )


async def test_a_rule_on_a_name_holds_for_callers_and_for_the_capability_itself(
    world: World, learned: dict[str, Answer], policy: Callable[[Answer], None]
) -> None:
    policy({"rules": [{"pattern": "cap:nest:*", "verdict": "deny"}]})
    nested = await _submitted(world, LOOKING)
    assert nested["error"]["kind"] == "denied"
    assert "The rule cap:nest:* says deny." in nested["error"]["message"]
    by_name = await world.http.post("/api/execute", json={"capability": "nest:look"})
    assert by_name.json()["error"]["kind"] == "denied"
    policy({})
    again = await world.http.post(
        "/api/execute", json={"capability": "nest:look", "args": {"path": "/"}}
    )
    assert again.json()["status"] == "success"
