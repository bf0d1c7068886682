"""Capabilities answered from the cache, on the whole stack."""

import json
from collections.abc import Callable, Generator
from typing import Any

import pytest

from libs.pml_local.tests.support.harness import eventually
from tests.e2e.harness import World

pytestmark = pytest.mark.e2e

Answer = dict[str, Any]
# Of shapes that no other suite on this stack has: the same code is the same capability.
LOOK = (
    "const seen = await mcp.counting.peek({ path: args.path });\nreturn { to_cache: seen.exists };"
)
STEP = "return { to_cache: await mcp.counting.step({ n: args.n }) };"
NESTING = "return [await capabilities.cache_look({ path: args.path }), args.why];"


Hold = Callable[..., None]


@pytest.fixture
def hold(world: World) -> Generator[Hold]:
    """Writes the rules of the policy file, each a pattern and a verdict; none hold in the end."""

    def write(*rules: tuple[str, str]) -> None:
        document = {"rules": [{"pattern": one, "verdict": verdict} for one, verdict in rules]}
        text = json.dumps(document)
        (world.stack.home / "policy.json").write_text(text, encoding="utf-8")

    yield write
    write()


async def learn(world: World, name: str, code: str, **args: object) -> Answer:
    """A capability once a run of it is learned."""
    done = await world.execute(code, name=name, args=args)
    assert done["status"] == "success", done

    async def learned() -> Answer | None:
        found = await world.http.get(f"/api/capabilities/{name}")
        return found.json() if found.status_code == 200 and found.json()["listed"] else None

    return await eventually(learned, within=30.0)


async def choose(world: World, name: str, **cache: object) -> Answer:
    answer = await world.http.patch(f"/api/capabilities/{name}", json={"cache": cache})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def call(world: World, name: str, **args: object) -> Answer:
    answer = await world.http.post("/api/execute", json={"capability": name, "args": args})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def used(world: World, name: str, times: int) -> bool:
    """Whether so many runs of a capability are learned, in the end."""

    async def so_many() -> bool:
        found = await world.http.get(f"/api/capabilities/{name}")
        return found.json()["usage"]["count"] == times

    return await eventually(so_many, within=30.0)


@pytest.mark.parametrize("policy", ["memoize", "persistent"])
async def test_what_ran_once_is_told_again_and_learned_once(world: World, policy: str) -> None:
    name = f"cache:{policy}"
    before = await learn(world, name, LOOK.replace("to_cache", policy), path="/")
    assert (before["cache"]["policy"], before["usage"]["count"]) == ("none", 1)
    chosen = await choose(world, name, policy=policy, ttl_s=600)
    assert chosen["cache"] == {"policy": policy, "ttl_s": 600, "force": False, "revision": 1}
    first = await call(world, name, path="/")
    assert first["status"] == "success"
    assert "cached" not in first
    assert await call(world, name, path="/") == {**first, "cached": True}
    assert await used(world, name, 2)
    traces = (await world.http.get(f"/api/workflows/{first['workflowId']}/trace")).json()
    assert traces["total"] == 1
    other = await call(world, name, path="/nowhere")
    assert other["workflowId"] != first["workflowId"]
    assert await used(world, name, 3)

    def counted() -> bool:
        counts = world.telemetry.counts
        return all(counts.get(("pml.cache.lookups", outcome), 0) for outcome in ("hit", "miss"))

    def told() -> bool:
        spans = world.telemetry.of_workflow(first["workflowId"])
        outcomes = [span.attributes.get("pml.cache.outcome") for span in spans]
        return {"miss", "hit"} <= set(outcomes)

    assert await eventually(told, within=30.0)
    assert await eventually(counted, within=30.0)


async def test_what_changes_something_is_cached_with_force_alone_and_then_done_once(
    world: World, hold: Hold
) -> None:
    await learn(world, "cache:step", STEP, n=8100)
    body = {"cache": {"policy": "memoize"}}
    refused = await world.http.patch("/api/capabilities/cache:step", json=body)
    assert refused.status_code == 409
    assert "counting:step" in refused.json()["error"]["message"]
    await choose(world, "cache:step", policy="memoize", force=True)
    asked = await call(world, "cache:step", n=8101)
    assert asked["status"] == "approval_required"
    await world.approve(asked["workflowId"])
    await world.end_of(asked["workflowId"])
    assert (await call(world, "cache:step", n=8101))["status"] == "approval_required"

    hold(("counting:step", "allow"))
    first = await call(world, "cache:step", n=8102)
    assert first["status"] == "success", first
    again = await call(world, "cache:step", n=8102)
    assert again == {**first, "cached": True}
    assert (world.steps()[8101], world.steps()[8102]) == (1, 1)


async def test_what_is_denied_now_is_not_told_and_is_told_again_when_it_is_allowed(
    world: World, hold: Hold
) -> None:
    await learn(world, "cache:look", LOOK, path="/")
    await choose(world, "cache:look", policy="persistent")
    first = await call(world, "cache:look", path="/")
    for pattern in ("counting:peek", "cap:cache:look"):
        hold((pattern, "deny"))
        denied = await call(world, "cache:look", path="/")
        assert (denied["status"], denied["error"]["kind"]) == ("error", "denied")
    hold()
    assert await call(world, "cache:look", path="/") == {**first, "cached": True}


async def test_a_call_inside_a_run_runs_and_its_caller_may_be_cached(world: World) -> None:
    await learn(world, "cache:look", LOOK, path="/")
    await choose(world, "cache:look", policy="memoize")
    await call(world, "cache:look", path="/")
    await learn(world, "cache:nesting", NESTING, path="/", why="first")
    await choose(world, "cache:nesting", policy="memoize")
    first = await call(world, "cache:nesting", path="/", why="second")
    assert (first["status"], first["result"]) == ("success", [{"to_cache": True}, "second"])
    assert [task["tool"] for task in first["tasks"]] == ["counting:peek"]
    again = await call(world, "cache:nesting", path="/", why="second")
    assert again == {**first, "cached": True}
