"""Programs that call what was learned: seen, decided and bound through the whole stack."""

import json
from collections.abc import AsyncGenerator, Callable
from typing import Any, cast

import pytest

from pml_local.testing import eventually
from tests.e2e.world import World

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

    return await eventually(known, within=10.0)


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


async def test_a_nested_capability_is_seen_bound_and_not_run_yet(
    world: World, learned: dict[str, Answer]
) -> None:
    answer = await _submitted(world, LOOKING)
    assert answer["status"] == "error"
    assert answer["error"]["kind"] == "rejected"
    assert "cannot call capabilities in this version" in answer["error"]["message"]
    workflow = cast(Answer, await world.workflow(answer["workflowId"]))
    (node,) = [one for one in workflow["structure"]["nodes"] if one["type"] == "capability"]
    assert (node["id"], node["name"]) == ("n1", "nest:look")
    assert node["capability_id"] == learned["nest:look"]["capability_id"]
    (bound,) = workflow["analysis"]["capabilities"]
    assert bound["code_hash"] == learned["nest:look"]["code_hash"]
    (tool,) = workflow["decision"]["tools"]
    assert (tool["tool"], tool["verdict"], tool["node_ids"]) == ("counting:peek", "allow", ["n1"])


async def test_what_a_nested_capability_changes_is_asked_for(
    world: World, learned: dict[str, Answer]
) -> None:
    answer = await _submitted(world, "return await mcp.call('cap:nest:step', { n: 4242 });")
    assert answer["status"] == "approval_required"
    (reason,) = answer["approval"]["reasons"]
    assert "through capability nest:step on line 1 with n = 4242." in reason
    assert [call["tool"] for call in answer["approval"]["calls"]] == ["cap:nest:step"]
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
